"""What two sets show beside each other: copies told from rows alike by nature, and scales that differ from drifts."""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits

from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.two_sets import _copies as _copies_of
from trainwright.probes.splits.two_sets import between, contradictions, values_of
from trainwright.stages import Copies, Scaling, Split

RNG = np.random.default_rng


def _between(x, y, held_x, held_y) -> dict:
    sets = [
        Split(name=name, rows=len(rows), columns={"x": rows, "y": labels}, read=len(rows))
        for name, rows, labels in (("train", x, y), ("evaluation", held_x, held_y))
    ]
    train, held = (measure_split(s, ("y",)) for s in sets)
    return between(sets[0], train, sets[1], held)


def _halves(x, y, seed: int = 1) -> dict:
    order = RNG(seed).permutation(len(x))
    cut = len(x) * 3 // 4
    return _between(x[order[:cut]], y[order[:cut]], x[order[cut:]], y[order[cut:]])


def _copies(found: dict) -> Copies:
    copies = found["copies"]
    assert copies is not None and found["overlap"] > 0
    return copies


def test_repeated_rows_of_measurements_are_far_from_all_others() -> None:
    x = RNG(0).normal(size=(300, 8))
    x, y = np.concatenate([x, np.repeat(x[:30], 9, axis=0)]), np.zeros(570, int)
    y[300:] = y[:30] = 1
    copies = _copies(_halves(x, y))
    assert copies.nearest_differing == 8 and copies.same_label_share == 1.0


def test_a_shared_row_of_millions_asks_for_no_list_of_all() -> None:
    """Of ten million rows, of which one was in both sets, 1 GB went into their numbers."""
    columns = {"x": np.broadcast_to(np.arange(3, dtype=np.float32), (10**7, 3)), "y": np.broadcast_to(1, 10**7)}
    train, held = (Split(name="train", rows=10**7, columns=columns), Split(name="evaluation", rows=1, columns=columns))
    tracemalloc.start()
    _copies_of(train, held, "y", ["x"], [(0, 5_000_000)])
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 10 * 2**20


def test_repeated_pictures_are_far_from_all_others() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = np.concatenate([digits.images[:400], np.repeat(digits.images[:40], 9, axis=0)])
    y = np.concatenate([digits.target[:400], np.repeat(digits.target[:40], 9)])
    assert _copies(_halves(x, y)).nearest_differing > 10


@pytest.mark.parametrize(("columns", "values"), [(4, 3), (8, 3), (10, 2), (3, 8)])
def test_rows_of_few_values_have_others_that_are_nearly_alike(columns: int, values: int) -> None:
    x = RNG(0).integers(0, values, size=(2000, columns)).astype(np.float32)
    assert _copies(_halves(x, (x.sum(axis=1) > columns).astype(int))).nearest_differing < 3


def test_short_texts_have_others_that_are_nearly_alike() -> None:
    draw = RNG(0)
    x = np.zeros((2000, 12), dtype=np.int64)
    for row, length in enumerate(draw.geometric(0.5, size=2000).clip(1, 12)):
        x[row, :length] = draw.zipf(1.6, size=length).clip(1, 60)
    assert _copies(_halves(x, x[:, 0] % 2)).nearest_differing < 3


def test_replicates_have_labels_of_their_own() -> None:
    x = np.repeat(RNG(0).normal(size=(60, 6)), 10, axis=0)
    y = x[:, 0] + RNG(1).normal(size=600)
    assert _copies(_halves(x, y)).same_label_share < 0.1


def _sure(scaling: Scaling | None) -> bool:
    return scaling is not None and scaling.gain > 0.1 and scaling.gain_deviations > 4


def _table(rows: int = 800) -> tuple[np.ndarray, np.ndarray]:
    draw = RNG(0)
    x = np.stack(
        [draw.normal(50, 20, rows), draw.exponential(1e4, rows), draw.random(rows), draw.normal(-7, 1, rows)], 1
    )
    score = (x[:, 0] - 50) / 20 + x[:, 3] + 7 + 0.3 * draw.normal(size=rows)
    return x, score


@pytest.mark.parametrize("kind", ["class", "real"])
@pytest.mark.parametrize("raw", ["evaluation", "train"])
def test_one_set_is_scaled_and_the_other_is_not(kind: str, raw: str) -> None:
    x, score = _table()
    y = (score > 0).astype(int) if kind == "class" else score
    scaled = (x - x[:600].mean(0)) / x[:600].std(0)
    parts = (scaled[:600], x[600:]) if raw == "evaluation" else (x[:600], scaled[600:])
    scaling = _between(parts[0], y[:600], parts[1], y[600:])["scaling"]
    assert _sure(scaling) and scaling.training_is_scaled is (raw == "evaluation")
    assert scaling.error_rescaled < 0.8 < scaling.error


def test_the_order_of_the_evaluation_set_changes_nothing() -> None:
    """Of a set sorted by its targets, the error of an answer for all was that of its first rows."""
    x, score = _table(3000)
    scaled = (x - x[:800].mean(0)) / x[:800].std(0)
    held, wanted, order = x[800:], score[800:], np.argsort(np.abs(score[800:] - score.mean()))
    mixed, near, far = (
        _between(scaled[:800], score[:800], held[rows], wanted[rows])["scaling"]
        for rows in (slice(None), order, order[::-1])
    )
    assert mixed.gain == pytest.approx(near.gain, abs=0.1) and mixed.gain == pytest.approx(far.gain, abs=0.1)


def test_both_sets_scaled_or_raw_are_alike() -> None:
    x, score = _table()
    for rows in (x, (x - x.mean(0)) / x.std(0), x / np.abs(x).max(0)):
        assert _between(rows[:600], score[:600], rows[600:], score[600:])["scaling"] is None


def test_pictures_of_which_one_set_is_divided() -> None:
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = np.repeat(np.repeat(digits.images, 4, 1), 4, 2).astype(np.uint8) * 15
    found = _between(pixels[:600] / np.float32(255), digits.target[:600], pixels[600:900], digits.target[600:900])
    assert _sure(found["scaling"])


@pytest.mark.parametrize("seed", range(5))
def test_a_series_that_drifts_is_not_a_scale(seed: int) -> None:
    """Windows of a price that doubles again and again, scaled with the numbers of its first part; the next value."""
    price = np.exp(np.cumsum(RNG(seed).normal(0.01, 0.03, 1200)))
    windows = np.lib.stride_tricks.sliding_window_view(price, 10)
    x, y = windows[:-1], windows[1:, -1]
    low, wide = x[:800].mean(), x[:800].std()
    x, y = (x - low) / wide, (y - low) / wide
    assert not _sure(_between(x[:800], y[:800], x[800:], y[800:])["scaling"])


@pytest.mark.parametrize("seed", range(5))
def test_other_times_and_rare_values_are_not_a_scale(seed: int) -> None:
    draw = RNG(seed)
    time = np.linspace(0, 1, 1000)
    x = np.stack([time, draw.normal(size=1000), draw.random(1000) < 0.002, draw.standard_cauchy(1000)], 1)
    x = (x - x[:950].mean(0)) / np.maximum(x[:950].std(0), 1e-9)
    y = (x[:, 1] + 0.5 * draw.normal(size=1000) > 0).astype(int)
    assert not _sure(_between(x[:950], y[:950], x[950:], y[950:])["scaling"])


def test_a_relation_that_no_scale_hides_is_off_all_the_same() -> None:
    """Which of two columns is larger is told by their difference at any scale, and with what sureness is not."""
    x = RNG(0).normal(50, 20, size=(800, 8))
    y = (x[:, 0] > x[:, 1]).astype(int)
    assert _sure(_between((x[:600] - 50) / 20, y[:600], x[600:], y[600:])["scaling"])


def test_unrelated_labels_prove_nothing() -> None:
    x, _ = _table()
    scaled = (x - x.mean(0)) / x.std(0)
    for y in (RNG(3).integers(0, 2, 800), RNG(3).normal(size=800)):
        assert not _sure(_between(scaled[:600], y[:600], x[600:], y[600:])["scaling"])


@pytest.mark.parametrize("seed", range(5))
def test_a_class_of_a_series_that_drifts_is_not_a_scale(seed: int) -> None:
    """Whether the price of the next day is higher, where days that follow each other are alike in that."""
    draw = RNG(seed)
    steps = np.zeros(1200)
    for day in range(1, 1200):
        steps[day] = 0.3 * steps[day - 1] + draw.normal(0.01, 0.03)
    price = np.exp(np.cumsum(steps))
    windows = np.lib.stride_tricks.sliding_window_view(price, 10)
    x, y = windows[:-1], (windows[1:, -1] > windows[:-1, -1]).astype(int)
    x = (x - x[:800].mean()) / x[:800].std()
    assert not _sure(_between(x[:800], y[:800], x[800:], y[800:])["scaling"])


def _texts(texts: list[str]) -> Copies:
    """The second half of texts against the first."""
    half = len(texts) // 2
    labels = [len(text) % 2 for text in texts]
    sets = [
        Split(name=name, rows=half, columns={"text": texts[part], "y": labels[part]}, read=half)
        for name, part in (("train", slice(half)), ("evaluation", slice(half, None)))
    ]
    train, held = (measure_split(s, ("y",)) for s in sets)
    return _copies(between(sets[0], train, sets[1], held))


def test_sentences_from_patterns_have_near_neighbors_and_copied_ones_have_none() -> None:
    draw = RNG(0)
    names, places = [f"name{i}" for i in range(8)], [f"place{i}" for i in range(8)]
    filled = [f"yesterday {draw.choice(names)} went to {draw.choice(places)} by the early train" for _ in range(400)]
    assert _texts(filled).nearest_differing <= 1
    written = [" ".join(draw.choice(5000, size=12).astype(str)) for _ in range(200)]
    copied = [written[i] for i in draw.permutation([*range(200), *range(30), *range(30), *range(30), *range(30)])]
    found = _texts(copied)
    assert found.nearest_differing >= 8 and found.same_label_share == 1


@pytest.mark.parametrize("whole", [True, False], ids=["columns", "items"])
def test_lists_of_several_lengths_within_a_row_are_told_apart(whole: bool) -> None:
    """A multiple-choice set that the collator pads: four lists of tokens a row, each of a length of its own."""
    rows = [[[1, row, 3], [1] * (row % 3 + 1), [4], [5, 6]] for row in range(8)]
    columns = {"input_ids": rows, "boxes": [[[0, 1], [2]]] * 8, "labels": [0, 1] * 4}
    items = [{name: values[row] for name, values in columns.items()} for row in range(8)]
    read = {"columns": columns, "read": 8} if whole else {"items": items, "indices": range(8)}
    sets = [Split(name=name, rows=8, **read) for name in ("train", "evaluation")]
    for label in ("labels", "boxes"):
        train, held = (measure_split(s, (label,), ["input_ids"]) for s in sets)
        assert between(sets[0], train, sets[1], held)["overlap"] == 8
    assert train.labels is not None and train.labels.kind == "other"


@pytest.mark.parametrize("whole", [True, False], ids=["array", "rows"])
def test_of_wide_rows_some_values_are_taken_before_they_are_put_together(whole: bool) -> None:
    """Labels that are masks of 256 x 256 took 0.5 GB for each of the sets."""
    masks = np.broadcast_to(np.arange(65536, dtype=np.float32).reshape(256, 256), (2000, 256, 256))
    column = masks if whole else list(masks)
    tracemalloc.start()
    found = values_of(Split(name="train", rows=2000, columns={"y": column}), "y", range(2000))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None and peak_bytes < 100 * 2**20
    assert np.array_equal(found, np.tile(np.linspace(0, 65535, 2000).astype(int), (2000, 1)))
    short = Split(name="train", rows=2, columns={"y": [np.zeros((2, 3)), np.ones((3, 2))]})
    assert values_of(short, "y", [0]).shape == (1, 6) and values_of(short, "y", [0, 1]) is None


def test_pixels_that_hardly_vary_do_not_hide_that_one_set_is_not_normalized() -> None:
    """Digits of 8 x 8 pixels, of which those at the border are nearly always empty."""
    x, y = load_digits(return_X_y=True)
    found = _between((x[:1400] / 16 - 0.3) / 0.37, y[:1400], x[1400:], y[1400:])["scaling"]
    assert _sure(found) and found.training_is_scaled


def test_a_normalization_that_one_set_lacks_is_seen_although_its_factor_is_small() -> None:
    x, y = load_digits(return_X_y=True)
    x = np.kron(x.reshape(-1, 8, 8) / 16, np.ones((3, 3))).reshape(-1, 576)  # one scale for all values, as of images
    x += RNG(0).normal(0, 0.02, x.shape)
    found = _between((x[:1400] - 0.3) / 0.37, y[:1400], x[1400:], y[1400:])["scaling"]
    assert _sure(found)
    assert _between(x[:1400], y[:1400], x[1400:], y[1400:])["scaling"] is None


def test_rows_with_the_same_inputs_and_other_classes_contradict_each_other():
    table = np.random.default_rng(0).normal(size=(100, 8))
    labels = np.arange(100) % 3
    twice = np.repeat(table[:50], 2, axis=0)

    def found(inputs, classes):
        train = Split(name="train", rows=100, columns={"x": inputs, "y": classes}, read=100)
        return contradictions(train, measure_split(train, ["y"], ["x"]), None, ["x"])

    seen = found(twice, labels)
    assert seen is not None and (seen.rows, seen.contradictory, seen.example) == (100, 100, (0, 1))
    assert seen.best_accuracy == pytest.approx(0.5) and seen.nearest_differing == 8
    assert found(table, labels) is None
    assert found(twice, np.repeat(labels[:50], 2)) is None
    assert found(np.zeros((100, 8)), labels) is None  # nothing to compare such rows with
