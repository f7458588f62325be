"""What a Keras loss expects of a model's outputs and labels: their kind, and the probabilities that it sees in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import SAMPLED_WIDTH, Floats, Integers, LabelKind
from trainwright.rehearsal.recorder import spread
from trainwright.stages import IGNORED_LABEL

_CLASSES = ("categorical_crossentropy", "sparse_categorical_crossentropy", "categorical_focal_crossentropy")
_BINARY = ("binary_crossentropy", "binary_focal_crossentropy")
_NUMBERS = ("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error",
            "mean_squared_logarithmic_error", "mse", "mae", "mape", "msle", "huber", "huber_loss", "log_cosh", "logcosh",
            "poisson")  # fmt: skip
# The least probability that a logarithm is taken of, as in Keras.
LEAST = 1e-7


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a loss expects."""

    kind: LabelKind
    from_logits: bool = False
    ignored: int | None = None
    """A class whose rows do not count."""
    is_hinge: bool = False


def expected_by(loss: Any) -> Expected | None:
    """What the loss, as it was passed to `compile`, expects; None: it is the user's own, or none."""
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", None) or type(loss).__name__
    function = getattr(loss, "fn", None)
    owner = loss if callable(loss) and hasattr(loss, "__name__") else type(loss)
    if not isinstance(loss, str) and not str(getattr(owner, "__module__", "")).startswith(("keras.", "tf_keras.")):
        if function is None or not str(getattr(function, "__module__", "")).startswith(("keras.", "tf_keras.")):
            return None
    if function is not None:
        name = getattr(function, "__name__", name)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name)).lower()
    options = getattr(loss, "_fn_kwargs", {})
    from_logits = bool(options.get("from_logits", getattr(loss, "from_logits", False)))
    ignored = options.get("ignore_class", getattr(loss, "ignore_class", None))
    if name in _CLASSES:
        return Expected(kind=LabelKind.CLASSES, from_logits=from_logits, ignored=ignored)
    if name in _BINARY:
        return Expected(kind=LabelKind.BINARY, from_logits=from_logits)
    if name in ("hinge", "squared_hinge"):
        return Expected(kind=LabelKind.BINARY, from_logits=True, is_hinge=True)
    return Expected(kind=LabelKind.NUMBERS) if name in _NUMBERS else None


@dataclass(frozen=True, kw_only=True)
class LabelledOutputs:
    """Outputs and labels of the same rows, in the form of the record."""

    kind: LabelKind
    width: int
    labels: NDArray[Any]
    guesses: Integers | None = None
    log_losses: Floats | None = None
    certainties: Floats | None = None
    values: Floats | None = None
    kept: Integers | None = None
    """The rows that count, of those that were given; None: there are several labels in a row."""
    places: Integers | None = None
    """Where there are: which of all places these are, row by row."""
    of_rows: Integers | None = None
    """And all labels of each row, `IGNORED_LABEL` where they do not count."""

    def arrays(self) -> dict[str, Any]:
        """What `Answers` keeps of them."""
        names = ("labels", "guesses", "log_losses", "certainties", "values")
        per_row = 1 if self.of_rows is None else max(1, self.of_rows.shape[1])
        return {**{name: getattr(self, name) for name in names}, "per_row": per_row}


def is_widened(outputs: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Whether an element-wise loss spreads one of them over the other."""
    if outputs.size == labels.size:
        return False
    try:
        np.broadcast_shapes(outputs.shape, labels.shape)
    except ValueError:
        return False
    return True


def class_labels(labels: NDArray[Any], outputs: tuple[int, ...]) -> Integers | None:
    """Class numbers, one for each place, of class numbers or one-hot rows; None: their shape fits neither."""
    places = outputs[:-1]
    if labels.shape == outputs and outputs[-1] > 1:
        return np.asarray(labels.argmax(-1), dtype=np.int64)
    if labels.size != int(np.prod(places)) or not np.isfinite(labels.astype(np.float64)).all():
        return None
    return np.asarray(labels.reshape(places), dtype=np.int64)


def compare(
    expected: Expected, outputs: NDArray[Any], labels: NDArray[Any], counts: NDArray[np.bool_] | None, most: int
) -> LabelledOutputs | None:
    """Outputs beside labels; None: they do not fit each other.

    Args:
        counts: which rows, or places in them, count in the loss (masks, weights); None: all.
        most: of places in rows, at most so many are kept, evenly spaced.
    """
    outputs = outputs.astype(np.float64)
    if expected.kind == LabelKind.CLASSES:
        return _compare_classes(expected, outputs, labels, counts, most)
    if labels.dtype.kind not in "fiub" or outputs.size != labels.size or not outputs.ndim:
        return None
    values, right = outputs.reshape(len(outputs), -1), labels.astype(np.float64).reshape(len(outputs), -1)
    columns = spread(values.shape[1], SAMPLED_WIDTH)
    kept = np.flatnonzero(counts) if counts is not None and counts.shape == (len(values),) else np.arange(len(values))
    values, right = values[kept][:, columns], right[kept][:, columns]
    if expected.from_logits:
        values = 1.0 / (1.0 + np.exp(-np.clip(values, -50.0, 50.0)))
    if expected.is_hinge:
        right = (right > 0).astype(np.float64)
    return LabelledOutputs(kind=expected.kind, width=len(columns), labels=right, values=values, kept=kept)


def _compare_classes(
    expected: Expected, outputs: NDArray[Any], labels: NDArray[Any], counts: NDArray[np.bool_] | None, most: int
) -> LabelledOutputs | None:
    width = outputs.shape[-1]
    found = class_labels(labels, outputs.shape) if outputs.ndim > 1 and labels.dtype.kind in "fiub" else None
    if found is None:
        return None
    is_single = found.ndim == 1
    right, scores = found.reshape(-1), outputs.reshape(-1, width)
    good = np.ones(len(right), dtype=bool)
    if counts is not None and counts.shape == found.shape[: counts.ndim]:
        good &= np.broadcast_to(counts.reshape(counts.shape + (1,) * (found.ndim - counts.ndim)), found.shape).reshape(
            -1
        )
    if expected.ignored is not None:
        good &= right != expected.ignored
    kept = np.flatnonzero(good)
    kept = kept[spread(len(kept), most)]
    right, scores = right[kept], scores[kept]
    if expected.from_logits:
        odds = np.exp(scores - scores.max(-1, keepdims=True))
        shares = odds / odds.sum(-1, keepdims=True)
    else:  # as Keras reads them: divided by their sum, and cut
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.nan_to_num(scores / scores.sum(-1, keepdims=True))
    inside = (right >= 0) & (right < width)
    own = np.where(inside, shares[np.arange(len(right)), np.where(inside, right, 0)], 0.0)
    return LabelledOutputs(
        kind=LabelKind.CLASSES,
        width=width,
        labels=right,
        guesses=scores.argmax(-1).astype(np.int64),
        log_losses=-np.log(np.clip(own, LEAST, 1.0)),
        certainties=shares.max(-1, initial=0.0),
        kept=kept if is_single else None,
        places=None if is_single else kept,
        of_rows=None if is_single else np.where(good, found.reshape(-1), IGNORED_LABEL).reshape(len(found), -1),
    )
