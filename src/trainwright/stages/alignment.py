"""Whether labels belong to their inputs: a small probe learns them, or learns them no better than permuted ones.

The probe is ridge regression on a kernel, judged by its leave-one-out predictions. One inverse serves the labels
and all their permutations, so a set takes about a second. What the labels' score is worth is told by a control:
a label made of one half of the features, predicted from the other half.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

import numpy as np

# Rows of the first look, and of the second one when the first finds nothing: about 0.5 s and 2 s on one core.
FIRST_ROWS = 1_200
MOST_ROWS = 1_600
FEWEST_ROWS = 250
# Fewer rows a class, or fewer rows outside the largest class, and a real relation can hide in the noise.
FEWEST_A_CLASS = 12
FEWEST_OUTSIDE = 60
PERMUTATIONS = 40
# More integers than this are a count or a score rather than classes; and how many other numberings of them are tried.
MOST_NUMBERED = 20
NUMBERINGS = 60
MOST_FEATURES = 4_000
# A label's score beyond that of its permutations, in their standard deviations, that ends the search.
PLAINLY_LEARNT = 5.0
# Random halves of the features that the control tries.
CONTROLS = 3
# Rows whose lengths are neighbours are exchanged in the control, so that length alone tells nothing there.
LENGTH_BLOCK = 16
# Correlation of neighbouring rows; that of rows in random order is within 0.1 of 0.
SERIES_CORRELATION = 0.5
# Random patterns of 5 x 5 (or 5) values, averaged over all places: features that do not mind where a thing lies.
PATTERNS = 64
PATTERN_SIZE = 5
FEWEST_PLACES = 16


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """How much better than their permutations a probe learns the labels of one set."""

    rows: int
    score: float
    """Of the labels, above the mean of their permutations, in the permutations' standard deviations."""
    control_score: float
    """The same, for a label made of half of the features and learnt from the other half."""
    accuracy: float | None = None
    """Share of rows whose class is predicted from the others; None for numbers."""
    permuted_accuracy: float | None = None
    single: bool = True
    """Each row is one text, image or vector, on its own; False for pairs and for windows of one long series, where
    a right label can depend on what such a probe cannot see."""
    classes: int | None = None
    """How many, of labels that are classes."""
    pair_control_score: float | None = None
    """Of words: the score of a label that says whether two halves of the vocabulary agree, learnt from pairs of words;
    the median of some halves."""
    likeness: float | None = None
    """Of words: the similarity, 0 to 1, of a row to the row most like it; the median over the rows."""
    inputs: str = ""
    """tokens, text or numbers."""
    numbering_error: float | None = None
    """Of labels that are 3 to MOST_NUMBERED integers: the share of their variance that a linear probe, fitted to the
    integers as a quantity, leaves unexplained in left-out rows."""
    other_numberings_error: float | None = None
    """The same, when the classes are numbered otherwise: the median of many numberings."""


def measure_alignment(
    columns: Mapping[str, Sequence[Any]], label: str, kind: str, accepts: Sequence[str] = ()
) -> Alignment | None:
    """Return how well the labels fit the inputs; None where a probe of this kind has nothing to say.

    Args:
        columns: the rows, by column; sequences of one length.
        kind: `class` or `real`, as in `LabelFacts`.
        accepts: the names that the model takes; columns of other names are left out, where any fits.
    """
    labels = _labels(columns.get(label, ()), kind)
    if labels is None or len(labels) < FEWEST_ROWS:
        return None
    found = None
    for most in (FIRST_ROWS, MOST_ROWS):
        rows = _chosen(len(labels), most)
        part = {n: [c[i] for i in rows] for n, c in columns.items() if n != label and len(c) == len(labels)}
        inputs = _inputs(part, accepts)
        if inputs is None or not _enough(labels[rows], kind):
            return found
        found = _measure(inputs, labels[rows], kind)
        if found is None or found.score > PLAINLY_LEARNT or len(labels) <= most:
            return found
    return found


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    kind: str
    features: np.ndarray
    """(rows, features), each a quantity of its own: words, or numbers."""
    more: np.ndarray | None = None
    """(rows, features) that are made of several of those: pairs of neighbouring words, patterns wherever they lie."""
    odd: np.ndarray | None = None
    """(rows, features) of what sums of words cannot say: lengths and sums, and whether they are even."""
    lengths: np.ndarray
    single: bool = True


def _labels(values: Sequence[Any], kind: str) -> np.ndarray | None:
    try:
        array = np.asarray([np.asarray(v).reshape(-1) for v in values])
    except (ValueError, TypeError):
        return None
    if (
        array.dtype.kind not in "iufb"
        or array.ndim != 2
        or array.shape[1] != 1
        or kind not in ("class", "real")
    ):
        return None
    flat = array[:, 0]
    return flat if kind == "class" or bool(np.isfinite(flat).all()) else None


def _enough(labels: np.ndarray, kind: str) -> bool:
    if kind == "real":
        return bool(labels.std() > 0)
    counts = np.unique(labels, return_counts=True)[1]
    return (
        len(counts) > 1
        and len(labels) / len(counts) >= FEWEST_A_CLASS
        and len(labels) - counts.max() >= FEWEST_OUTSIDE
    )


def _chosen(rows: int, most: int) -> np.ndarray:
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _inputs(part: Mapping[str, list[Any]], accepts: Sequence[str]) -> _Inputs | None:
    """The rows as numbers: of their tokens, else their text, else their numbers."""
    known = {n: c for n, c in part.items() if n in accepts} or dict(part)
    tokens = [n for n, c in known.items() if n.startswith("input_ids")]
    tokens = tokens or [n for n, c in known.items() if _are_sequences(c)]
    texts = [n for n, c in part.items() if isinstance(c[0], str)]
    if tokens:
        rows = [np.asarray(r).reshape(-1) for r in known[tokens[0]]]
        pairs = (
            len(tokens) > 1 or len(texts) > 1 or any(np.any(r) for r in part.get("token_type_ids", ())[:50])
        )
        if any(r.dtype.kind not in "iu" for r in rows):
            return None
        mask = part.get("attention_mask")
        rows = [r[np.asarray(m).reshape(-1) > 0] if len(np.atleast_1d(m)) == len(r) else r
                for r, m in zip(rows, mask)] if mask is not None else rows  # fmt: skip
        written = [str(t) for t in part[texts[0]]] if texts else None
        return _bag("tokens", [r.tolist() for r in rows], written, single=not pairs)
    numbers = [n for n, c in known.items() if _is_numeric(c)]
    if numbers and (len(numbers) == len(known) or not texts):
        return _numbers([np.stack([_array(v) for v in known[n]]) for n in numbers])
    if texts:
        written = [str(t) for t in part[texts[0]]]
        return _bag("text", [t.lower().split() for t in written], written, single=len(texts) == 1)
    return None


def _array(value: Any) -> np.ndarray:
    if hasattr(value, "numpy") and hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=np.float32)


def _are_sequences(column: Sequence[Any]) -> bool:
    """Whether the rows are lists of whole numbers that differ in length."""
    try:
        rows = [np.asarray(v) for v in column]
    except (ValueError, TypeError):
        return False
    return all(r.ndim == 1 and r.dtype.kind in "iu" for r in rows) and len({len(r) for r in rows}) > 1


def _is_numeric(column: Sequence[Any]) -> bool:
    """Whether every row is an array of numbers of one size."""
    try:
        sizes = {_array(v).size for v in column}
    except (ValueError, TypeError):
        return False
    return len(sizes) == 1 and 0 < next(iter(sizes)) <= 1_000_000


def _bag(kind: str, rows: list[list[Any]], written: list[str] | None, *, single: bool) -> _Inputs | None:
    words, more = _counts(rows), _counts([list(pairwise(r)) for r in rows])
    if words is None:
        return None
    lengths = np.asarray([len(r) for r in rows], dtype=np.float64)
    return _Inputs(kind=kind, features=words, more=more, odd=_odd(rows, written), lengths=lengths,
                   single=single and not _joined(rows))  # fmt: skip


def _odd(rows: list[list[Any]], written: list[str] | None) -> np.ndarray:
    """(rows, features): lengths, sums, first and last tokens, and whether each divides by 2 and by 3."""
    coded = [
        [int(t) if isinstance(t, (int, np.integer)) else zlib.crc32(t.encode()) for t in r] or [0]
        for r in rows
    ]
    wide = [[len(r), len(set(r)), sum(r), r[0], r[-1], max(r)] for r in coded]
    if written is not None:
        wide = [[*n, len(t), len(t.split()), sum(map(str.isupper, t)), sum(map(str.isdigit, t))]
                for n, t in zip(wide, written)]  # fmt: skip
    table = np.asarray(wide, dtype=np.float64)
    both = np.concatenate(
        [np.sign(table) * np.log1p(np.abs(table)), table % 2, table % 3 == 0, table % 3 == 1], axis=1
    )
    both = both - both.mean(axis=0)
    deviation = both.std(axis=0)
    return np.asarray(both[:, deviation > 0] / deviation[deviation > 0])


def _joined(rows: list[list[Any]]) -> bool:
    """Whether a token stands inside nearly every row, equally often: a separator of two parts, or a template."""
    inner = [r[1:-1] for r in rows]
    common = set(inner[0])
    for row in inner[1:20]:
        if len(common & set(row)) and len(row):
            common &= set(row)
    for token in common:
        counts = np.asarray([r.count(token) for r in inner])
        if counts.min() >= 0 and np.mean(counts == np.median(counts)) > 0.95 and np.median(counts) > 0:
            return True
    return False


def _counts(rows: list[list[Any]]) -> np.ndarray | None:
    """(rows, features) weights of what occurs in at least two rows: 1 + log count, times its rarity; unit rows."""
    seen: dict[Any, int] = {}
    for row in rows:
        for item in set(row):
            seen[item] = seen.get(item, 0) + 1
    chosen = sorted((i for i, n in seen.items() if 2 <= n < len(rows)), key=lambda i: -seen[i])[
        :MOST_FEATURES
    ]
    if len(chosen) < 2:
        return None
    index = {item: k for k, item in enumerate(chosen)}
    table = np.zeros((len(rows), len(chosen)), dtype=np.float32)
    for number, row in enumerate(rows):
        for item in row:
            if (k := index.get(item)) is not None:
                table[number, k] += 1
    rarity = np.log(len(rows) / np.asarray([seen[i] for i in chosen]))
    return np.log1p(table) * rarity.astype(np.float32)


def _numbers(columns: list[np.ndarray]) -> _Inputs | None:
    count = len(columns[0])
    wide = [c for c in columns if c[0].size > 1]
    table = _standard(_thinned(np.concatenate([c.reshape(count, -1) for c in columns], axis=1)))
    if table.shape[1] == 0:
        return None
    return _Inputs(kind="numbers", features=table, more=_patterns(wide[0]) if wide else None, lengths=np.zeros(count),
                   single=len({c.shape for c in wide}) == len(wide) and not _series(table))  # fmt: skip


def _series(table: np.ndarray) -> bool:
    """Whether each row resembles the one before it: windows of a series, or rows in the order of time."""
    return float((table[1:] * table[:-1]).mean()) > SERIES_CORRELATION


def _thinned(table: np.ndarray) -> np.ndarray:
    if table.shape[1] <= MOST_FEATURES:
        return table
    return table[:, np.linspace(0, table.shape[1] - 1, MOST_FEATURES).astype(int)]


def _standard(table: np.ndarray) -> np.ndarray:
    table = np.where(np.isfinite(table), table, 0.0)
    table = table - table.mean(axis=0)
    deviation = table.std(axis=0)
    return np.asarray((table / np.where(deviation > 0, deviation, 1.0))[:, deviation > 0])


def _patterns(rows: np.ndarray) -> np.ndarray | None:
    """(rows, features): how strongly random local patterns occur in an image or a signal, wherever they lie."""
    rows = np.where(np.isfinite(rows), rows, 0.0)
    if rows.ndim == 4 and rows.shape[-1] <= 4 < rows.shape[1]:
        rows = rows.transpose(0, 3, 1, 2)
    rows = rows.reshape(len(rows), -1, *rows.shape[-2:]) if rows.ndim > 2 else rows[:, None, None]
    rows = rows[
        :, :3, :: max(1, rows.shape[2] // 32), :: max(1, rows.shape[3] // (32 if rows.shape[2] > 1 else 256))
    ]
    height, width = min(PATTERN_SIZE, rows.shape[2]), min(PATTERN_SIZE, rows.shape[3])
    if rows.shape[3] < FEWEST_PLACES:
        return None
    rows = (rows - rows.mean()) / (rows.std() or 1.0)
    patterns = (
        np.random.default_rng(3)
        .standard_normal((PATTERNS, rows.shape[1] * height * width))
        .astype(np.float32)
    )
    patterns -= patterns.mean(axis=1, keepdims=True)
    found = []
    for row in rows.astype(np.float32):
        places = np.lib.stride_tricks.sliding_window_view(row, (height, width), axis=(1, 2))
        places = places.transpose(1, 2, 0, 3, 4).reshape(-1, patterns.shape[1])
        strength = np.maximum(places @ patterns.T, 0.0)
        found.append(np.concatenate([strength.mean(axis=0), strength.max(axis=0)]))
    return _standard(np.asarray(found))


def _measure(inputs: _Inputs, labels: np.ndarray, kind: str) -> Alignment | None:
    targets = _targets(labels, kind)
    random = np.random.default_rng(0)
    orders = [random.permutation(len(labels)) for _ in range(PERMUTATIONS)]
    best, accuracies = -np.inf, (0.0, 0.0)
    numbered: tuple[float, float] | None = None
    for kernel in _kernels(inputs):
        numbered = numbered or _numbering_errors(kernel, labels)
        predicted = _leave_one_out(kernel, np.concatenate([targets, *(targets[o] for o in orders)], axis=1))
        score = _score(predicted, targets, orders)
        if score > best:
            best, accuracies = score, _accuracies(predicted, targets, orders)
        if best > PLAINLY_LEARNT:
            break
    words_alone = best <= PLAINLY_LEARNT and inputs.kind != "numbers"
    return Alignment(
        rows=len(labels),
        score=float(best),
        control_score=_control(inputs) if best <= PLAINLY_LEARNT else float("nan"),
        accuracy=accuracies[0] if kind == "class" else None,
        permuted_accuracy=accuracies[1] if kind == "class" else None,
        single=inputs.single,
        classes=targets.shape[1] if kind == "class" else None,
        likeness=_likeness(inputs) if words_alone else None,
        pair_control_score=_pair_control(inputs) if words_alone else None,
        inputs=inputs.kind,
        numbering_error=numbered[0] if numbered else None,
        other_numberings_error=numbered[1] if numbered else None,
    )


def _likeness(inputs: _Inputs) -> float:
    """The similarity (cosine of the weighed words) of a row to the one most like it, the median over the rows."""
    similar = _linear(_unit(inputs.features[:FIRST_ROWS]))
    np.fill_diagonal(similar, 0.0)
    return float(np.median(similar.max(axis=1)))


def _pair_control(inputs: _Inputs) -> float:
    """The score of labels that no word tells and that pairs of words do: whether two sums over the words agree."""
    table = _unit(inputs.features[:FIRST_ROWS])
    kernel, scores = _linear(table) ** 2, []
    for seed in range(CONTROLS):
        random = np.random.default_rng(seed)
        half = np.asarray(random.random(table.shape[1]) < 0.5)
        sums = [table[:, part] @ random.choice([-1.0, 1.0], int(part.sum())) for part in (half, ~half)]
        left, right = (s > np.median(s) for s in sums)
        targets = _targets((left == right).astype(int), "class")
        orders = [random.permutation(len(table)) for _ in range(PERMUTATIONS)]
        predicted = _leave_one_out(kernel, np.concatenate([targets, *(targets[o] for o in orders)], axis=1))
        scores.append(_score(predicted, targets, orders) if len(set(left == right)) > 1 else 0.0)
    return float(np.median(scores))


def _numbering_errors(kernel: np.ndarray, labels: np.ndarray) -> tuple[float, float] | None:
    """How badly the labels, taken for a quantity, are predicted as they are numbered, and numbered otherwise."""
    values, index = np.unique(labels, return_inverse=True)
    count = len(values)
    if not 3 <= count <= MOST_NUMBERED or bool((values != np.round(values)).any()):
        return None
    random = np.random.default_rng(0)
    if count <= 4:  # a numbering and its reverse are one
        others = [p for p in permutations(range(count)) if p[0] < p[-1] and p != tuple(range(count))]
    else:
        others = [tuple(random.permutation(count)) for _ in range(NUMBERINGS)]
    columns = np.stack([np.asarray(p, dtype=float)[index] for p in (tuple(range(count)), *others)], axis=1)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    predicted = _leave_one_out(kernel, columns)
    fit = (predicted * columns).mean(axis=0) / (predicted.std(axis=0) + 1e-12)
    errors = 1 - np.maximum(fit, 0.0) ** 2
    return float(errors[0]), float(np.median(errors[1:]))


def _targets(labels: np.ndarray, kind: str) -> np.ndarray:
    """(rows, columns) centred: one column a class, rare classes weighing as much as frequent ones; or ranks."""
    if kind == "real":
        ranks: np.ndarray = np.argsort(np.argsort(labels)).astype(np.float64)
        centred: np.ndarray = (ranks - ranks.mean()) / ranks.std()
        return centred[:, None]
    one_hot: np.ndarray = (labels[:, None] == np.unique(labels)[None]).astype(np.float64)
    share = one_hot.mean(axis=0)
    weighed: np.ndarray = (one_hot - share) / np.sqrt(share)
    return weighed


def _kernels(inputs: _Inputs) -> Any:
    """Kernels of the probes, each with a mean diagonal of 1: linear, with pairs of words, with near neighbours."""
    if inputs.kind != "numbers":
        length = np.log1p(inputs.lengths)
        length = (length - length.mean()) / (length.std() or 1.0)
        near = np.exp(-0.5 * (length[:, None] - length[None]) ** 2)
        words = _linear(_unit(inputs.features))
        yield words + 0.1 * near
        yield words**2  # every two words of a row, wherever they stand: agreement, negation
        if inputs.more is not None:
            yield 0.5 * words + 0.5 * _linear(_unit(inputs.more)) + 0.1 * near
        if inputs.odd is not None and inputs.odd.shape[1]:
            yield _linear(inputs.odd) / inputs.odd.shape[1]
        return
    linear = _linear(inputs.features) / inputs.features.shape[1]
    squares = np.diag(linear)
    distance = np.maximum(squares[:, None] + squares[None] - 2 * linear, 0.0)
    yield linear
    middle = np.median(distance[distance > 0]) if (distance > 0).any() else 1.0
    yield np.exp(-distance / middle)
    yield np.exp(-8 * distance / middle)
    if inputs.more is not None and inputs.more.shape[1]:
        yield _linear(inputs.more) / inputs.more.shape[1]


def _unit(table: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(size > 0, size, 1.0)


def _linear(table: np.ndarray) -> np.ndarray:
    table = table.astype(np.float32)
    return np.asarray(table @ table.T, dtype=np.float64)


def _leave_one_out(kernel: np.ndarray, targets: np.ndarray, penalty: float = 1.0) -> np.ndarray:
    """Each row's prediction by ridge regression on all other rows, in closed form.

    With H = K (K + penalty I)^-1 the left-out residual of row i is (y - Hy)_i / (1 - H_ii).
    """
    inverse = np.linalg.inv(kernel + penalty * np.mean(np.diag(kernel)) * np.eye(len(kernel)))
    return np.asarray(targets - (inverse @ targets) / np.diag(inverse)[:, None])


def _score(predicted: np.ndarray, targets: np.ndarray, orders: list[np.ndarray]) -> float:
    """The fit of the labels beyond that of their permutations, in the permutations' standard deviations."""
    width = targets.shape[1]
    fits = [float((predicted[:, :width] * targets).mean())]
    for number, order in enumerate(orders, 1):
        fits.append(float((predicted[:, number * width : (number + 1) * width] * targets[order]).mean()))
    return (fits[0] - float(np.mean(fits[1:]))) / (float(np.std(fits[1:], ddof=1)) or 1e-12)


def _accuracies(predicted: np.ndarray, targets: np.ndarray, orders: list[np.ndarray]) -> tuple[float, float]:
    width = targets.shape[1]
    shares = []
    for number, order in enumerate([np.arange(len(targets)), *orders]):
        guess = predicted[:, number * width : (number + 1) * width].argmax(axis=1)
        shares.append(float((guess == targets[order].argmax(axis=1)).mean()))
    return shares[0], float(np.mean(shares[1:]))


def _control(inputs: _Inputs) -> float:
    """The score of a label made of half of the features, for a probe that sees the other half; the best of some halves.

    Exchanging only rows of nearly the same length leaves length no part in it.
    """
    table = inputs.features[:FIRST_ROWS]
    best = 0.0
    for seed in range(CONTROLS):
        best = max(best, _score_of_half(inputs, table, np.random.default_rng(seed)))
        if best > 2 * PLAINLY_LEARNT:
            break
    return best


def _score_of_half(inputs: _Inputs, table: np.ndarray, random: np.random.Generator) -> float:
    half = random.random(table.shape[1]) < 0.5
    table = table if inputs.kind == "numbers" else _unit(table)
    left, right = table[:, half], table[:, ~half]
    if 0 in (left.shape[1], right.shape[1]):
        return 0.0
    direction = _main_direction(left - left.mean(axis=0))
    ranks = np.argsort(np.argsort(direction))
    targets = _targets((ranks * 2 >= len(ranks)).astype(int), "class")
    orders = [_order_within_lengths(inputs.lengths[: len(table)], random) for _ in range(PERMUTATIONS)]
    other = right if inputs.kind == "numbers" else _unit(right)
    kernel = _linear(other) / (np.mean((other**2).sum(axis=1)) or 1.0)
    predicted = _leave_one_out(kernel, np.concatenate([targets, *(targets[o] for o in orders)], axis=1))
    return _score(predicted, targets, orders)


def _main_direction(table: np.ndarray) -> np.ndarray:
    """Each row's place along the direction in which the rows differ most."""
    place = np.random.default_rng(2).standard_normal(len(table))
    for _ in range(20):
        place = table @ (table.T @ place)
        place /= np.linalg.norm(place) or 1.0
    return place


def _order_within_lengths(lengths: np.ndarray, random: np.random.Generator) -> np.ndarray:
    sorted_rows = np.lexsort((random.random(len(lengths)), lengths))
    if not lengths.any():
        return random.permutation(len(lengths))
    order = np.arange(len(lengths))
    for start in range(0, len(lengths), LENGTH_BLOCK):
        block = sorted_rows[start : start + LENGTH_BLOCK]
        order[block] = random.permutation(block)
    return order
