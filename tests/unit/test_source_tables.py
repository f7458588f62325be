"""What the script's own objects tell of its data: tables that the rows came from, and rows that are never given."""

import numpy as np
import pandas as pd
import pytest

from trainwright.adapters.data import source_tables
from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.labels import alignment_of
from trainwright.adapters.data.reading import read_split
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.probes.splits.census import measure_split
from trainwright.rules.dataset.rows import duplicate_examples
from trainwright.stages import AlignedSource, DatasetFacts, SetupFacts, Split

X = np.random.default_rng(0).normal(size=(600, 6))
Y = (X[:, 0] + X[:, 1] > 0.6).astype(int)
ORDER = np.random.default_rng(1).permutation(600)


def _source(x: np.ndarray, y: np.ndarray, **scope) -> AlignedSource | None:
    split = Split(name="train", rows=len(x), columns={"x": x, "y": y}, read=len(x))
    facts = measure_split(split, ("y",))
    return aligned_source(split, facts, alignment_of(split, facts, ()), ["x"], {"x": x, "y": y, **scope})


def test_the_table_that_shuffled_inputs_came_from_is_found_whatever_their_scale() -> None:
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.where(Y, "yes", "no"), name="n")
    found = _source(3 * X[ORDER][:480] - 1, Y[:480], frame=frame)
    assert found is not None and found.expression == "frame" and found.alignment.score > 6
    assert _source(X[ORDER], Y, raw=X).expression == "raw and y"
    assert _source(X[ORDER], Y, bunch={"data": X, "target": Y}).expression == 'bunch["data"] and bunch["target"]'


def test_other_tables_tell_nothing() -> None:
    other = np.random.default_rng(2).exponential(size=(600, 6))
    assert _source(X, Y, raw=X) is None, "labels that are learnt need no source"
    assert _source(X[ORDER], Y) is None
    assert _source(X[ORDER], Y, other=other, those=(other[:, 0] > 0.9).astype(int)) is None
    two = pd.DataFrame(X).assign(kind=Y, like=1 - Y)
    assert _source(X[ORDER], Y[::-1], two=two) is None, "either column may be the labels'"


def test_how_a_column_is_distributed_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was measured for each pair of columns: minutes for some hundred columns of 100,000 rows."""
    measured = []
    quantiles = source_tables._quantiles
    monkeypatch.setattr(source_tables, "_quantiles", lambda c: measured.append(len(c)) or quantiles(c))
    assert _source(X[ORDER], Y, raw=X, narrow=X[:, :2]) is not None
    assert len(measured) == 2 * 2 * 6, "two tables beside the labels; six columns of each, and of the inputs"


def test_a_table_that_holds_the_pairs_of_training_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(source_tables, "measure_alignment", lambda table, *_: asked.append(len(table["y"])))
    shuffled = X[ORDER].astype(np.float32)
    assert _source(shuffled[:480], Y[:480], whole=X[ORDER], labels=Y) is None and not asked
    assert _source(shuffled[:480], Y[:480], whole=X, labels=Y) is None and asked == [600]


class Rows:
    """Rows of x, chosen by a function of the index."""

    def __init__(self, chosen, rows: int = 400) -> None:
        self.x, self.y, self.chosen, self.rows = X[:400], Y[:400], chosen, rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int):
        row = self.chosen(index)
        return self.x[row], self.y[row]


def _said(data: object) -> list[str]:
    split = read_split("train", data)
    facts = measure_split(split, ("1",))
    dataset = DatasetFacts(train=facts, repetition=repetition_of(data, split, facts))
    return [f.message for f in duplicate_examples.function(dataset, SetupFacts())]


@pytest.mark.parametrize("chosen", [lambda i: 0, lambda i: i % 32, lambda i: i // 32 + i % 32])
def test_an_index_that_is_not_used_leaves_rows_out(chosen) -> None:
    (message,) = _said(Rows(chosen))
    assert "self.x holds 400" in message


_DRAW = np.random.default_rng(3)
_BALANCED = [np.flatnonzero(Y[:400] == 1)[:5], np.flatnonzero(Y[:400] == 0)[:5]]


@pytest.mark.parametrize(
    "chosen",
    [
        lambda i: i % 400,
        lambda i: i // 10 % 400,
        lambda i: int(_DRAW.integers(400)),
        lambda i: int(_DRAW.choice(_BALANCED[i % 2])),
    ],
    ids=["turns", "repeated", "drawn", "balanced"],
)
def test_rows_repeated_by_design_are_left_alone(chosen) -> None:
    assert not _said(Rows(chosen, rows=4000))


def test_the_same_inputs_with_other_labels_are_no_duplicates() -> None:
    """A network that paints pictures is given the same grid each time, and another picture as its target."""

    class Grid(Rows):
        def __getitem__(self, index: int):
            return np.zeros(4), float(self.x[index, 0])

    assert not _said(Grid(None))
