"""Inputs and results of Keras loss calls as facts, under the names that the rules use for losses."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainwright.core import Failure, Place
from trainwright.probes import losses
from trainwright.probes.constant import JudgedLoss, answers, hits_of_call
from trainwright.stages import ELEMENTWISE, IGNORED_LABEL, MOST_CLASSES, LossCall
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras

_SPARSE, _DENSE, _BINARY = ("sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy")
# Keras's losses by the names of their functions: how the record reads their outputs (`LossKind.form`), and the rules' names for
# them, of logits the last.
_LOSSES: Mapping[str, tuple[str, ...]] = {
    _SPARSE: ("shares", "nll_loss", "cross_entropy"),
    _DENSE: ("shares", "nll_loss", "cross_entropy"),
    _BINARY: ("binary", "binary_cross_entropy", "binary_cross_entropy_with_logits"),
    "mean_squared_error": ("numbers", "mse_loss"),
    "mean_absolute_error": ("numbers", "l1_loss"),
    "huber": ("numbers", "huber_loss"),
    "poisson": ("numbers", "poisson_nll_loss"),
    "kl_divergence": ("", "kl_div"),
    **dict.fromkeys(("hinge", "squared_hinge"), ("signs",)),
    "categorical_focal_crossentropy": ("shares",),
    "binary_focal_crossentropy": ("binary",),
    **dict.fromkeys(("mean_absolute_percentage_error", "mean_squared_logarithmic_error", "log_cosh"), ("numbers",)),
}
_OF_LOGITS = {"shares": "classes", "binary": "logits"}


@dataclass(frozen=True, kw_only=True)
class LossKind:
    """The kind of loss."""

    function: str
    """The rules' name for it: cross_entropy takes scores, nll_loss takes (log-)probabilities."""
    own: str
    """Keras's name for it."""
    from_logits: bool | None
    """None: there is no such flag."""
    sparse: bool | None
    """Takes class indices; False: one-hot rows; None: neither."""
    form: str
    """How the record reads its outputs, as `LOSS_FORMS` says, or as `shares` of classes; empty: not at all."""
    options: Mapping[str, Any] = field(default_factory=dict)


def kind_of(loss: Any) -> LossKind | None:
    """Which Keras loss an object or a function computes; None for the user's own."""
    computed = getattr(loss, "fn", loss)
    own = getattr(computed, "__name__", "")
    if not own or not str(getattr(computed, "__module__", "")).startswith(("keras.", "tf_keras.")):
        return None
    options, reduction = getattr(loss, "_fn_kwargs", {}), getattr(loss, "reduction", "mean")
    kept = {k: v for k, v in options.items() if isinstance(v, (int, float, str)) and k != "from_logits"}
    kept["reduction"] = "mean" if reduction in ("sum_over_batch_size", "mean", "auto") else str(reduction)
    if (ignored := options.get("ignore_class")) is not None:
        kept["ignore_index"] = int(ignored)
    form, *names = _LOSSES.get(own, ("",))
    is_of_logits = bool(options.get("from_logits", False))
    flag = is_of_logits if len(names) > 1 else None
    form = _OF_LOGITS.get(form, form) if is_of_logits else form
    sparse = own == _SPARSE if own in (_SPARSE, _DENSE) else None
    function = names[bool(flag)] if names else own
    return LossKind(function=function, own=own, from_logits=flag, sparse=sparse, form=form, options=kept)


@dataclass(kw_only=True)
class KeptLoss:
    """One loss call, for measurements after the step."""

    kind: LossKind
    loss: Any
    """The loss object, with the repairs in force."""
    scores: Any
    targets: Any
    weight: Any = None
    value: Any = None


def align_shapes(kept: KeptLoss) -> tuple[np.ndarray, np.ndarray]:
    """Scores and targets as Keras compares them: a last axis of 1 is removed or added, class indices are whole."""
    scores, targets = tensors.to_numpy(kept.scores), tensors.to_numpy(kept.targets)
    if kept.kind.sparse and targets.dtype.kind in "fb" and bool((targets == np.round(targets)).all()):
        targets = targets.astype(np.int64)  # Keras accepts class indices of any dtype
    if kept.kind.sparse and targets.ndim == scores.ndim and targets.shape[-1:] == (1,):
        targets = targets[..., 0]
    if kept.kind.sparse is not None:
        return scores, targets
    if scores.ndim == targets.ndim + 1 and scores.shape[-1] == 1:
        return (scores, targets[:, None]) if targets.ndim == 1 else (scores[..., 0], targets)
    if targets.ndim == scores.ndim + 1 and targets.shape[-1] == 1:
        return scores, targets[..., 0]
    return scores, targets


def with_kind(loss: Any, kind: LossKind, changed: Mapping[str, Any], *, one_hot: bool = False) -> Any:
    """The loss with another flag, or another loss function by the rules' names.

    Args:
        one_hot: the targets have the scores' shape.
    """
    own, options = kind.own, dict(getattr(loss, "_fn_kwargs", {}))
    function = changed.get("function", kind.function)
    if function != kind.function:
        named = [name for name, (_, *names) in _LOSSES.items() if function in names]  # sparse or dense, or one
        own = named[-1 if one_hot else 0] if named else kind.own
        options = {k: v for k, v in options.items() if own == kind.own or k not in ("ignore_class", "axis")}
    flag = changed.get("from_logits", kind.from_logits)
    if function != kind.function and "from_logits" not in changed:
        flag = function in ("cross_entropy", "binary_cross_entropy_with_logits")
    if changed.get("own"):
        own = changed["own"]
    if own in (_SPARSE, _DENSE, _BINARY):
        options["from_logits"] = bool(flag)
    other = copy.copy(loss)
    other.fn, other._fn_kwargs = getattr(keras.losses, own), options
    return other


def measure_call(kept: KeptLoss, *, at: Place | None, failure: Failure | None = None, **more: Any) -> LossCall:
    """The facts of one call."""
    scores, targets = align_shapes(kept)
    kind, ignored = kept.kind, kept.kind.options.get("ignore_index")
    shown = losses.scores_shown(scores, -1, rounding=losses.SUM_WITHIN)
    if "log_normalised" in shown:  # the negative log-likelihood takes the probabilities themselves
        shown["log_normalised"] = shown["rows_sum_to_one"] and kind.function == "nll_loss"
    weights = None if kept.weight is None else tensors.to_numpy(kept.weight)
    bad = 0 if weights is None else int((~np.isfinite(weights)).sum())
    return LossCall(
        function=kind.function,
        inputs=tensors.array_facts(scores, dtype=tensors.dtype_name(kept.scores), requires_grad=True),
        targets=tensors.array_facts(targets),
        at=at,
        options={**kind.options, "has_weight": int(weights is not None), "non_finite_weights": bad},
        class_weights={} if weights is None else _class_weights(targets, weights),
        value=None if kept.value is None else float(tensors.to_numpy(kept.value).mean()),
        failure=failure,
        from_logits=kind.from_logits,
        takes_indices=kind.sparse,
        own_name=kind.own,
        casts_targets=True,
        rows_of_several_labels=losses.rows_of_several_labels(scores, targets),
        aligned_value=_aligned(kept, scores, targets),
        plain_value=losses.cross_entropy(scores, targets, -1, from_logits=bool(kind.from_logits), ignored=ignored)
        if kind.sparse
        else None,
        **losses.targets_shown(targets, ignored),
        **shown,
        **more,
    )


def _class_weights(targets: np.ndarray, weight: np.ndarray) -> dict[int, float]:
    """The weight of each class in the batch, if the rows of a class all have the same; empty if they do not."""
    classes = targets.argmax(axis=-1) if targets.ndim > 1 and targets.shape[-1] > 1 else targets
    classes, weight = classes.reshape(-1), weight.reshape(-1)
    if len(classes) != len(weight) or not np.isfinite(classes).all() or (classes != np.round(classes)).any():
        return {}
    found = np.unique(np.stack([classes.astype(np.float64), weight.astype(np.float64)]), axis=1)
    one_each = len(np.unique(found[0])) == found.shape[1] <= MOST_CLASSES
    return {int(c): float(w) for c, w in found.T} if one_each and len(np.unique(found[1])) > 1 else {}


def _aligned(kept: KeptLoss, scores: np.ndarray, targets: np.ndarray) -> float | None:
    """The value of an element-wise loss with the targets reshaped to the scores' shape; None if they have it."""
    if kept.kind.function not in ELEMENTWISE or scores.shape == targets.shape or scores.size != targets.size:
        return None
    value = kept.loss(targets.reshape(scores.shape).astype(np.float32), scores)
    return float(tensors.to_numpy(value).mean())


def judge_call(kept: KeptLoss) -> JudgedLoss:
    """One call, for comparison with a constant prediction; if the loss weights its rows, no constant prediction is known for it."""
    scores, targets = tensors.to_numpy(kept.scores), tensors.to_numpy(kept.targets)
    value = float(tensors.to_numpy(kept.value).mean()) if kept.value is not None else np.nan
    ignored = float(kept.kind.options.get("ignore_index", IGNORED_LABEL))
    return JudgedLoss(
        function=kept.kind.function,
        shape=scores.shape,
        class_axis=-1,
        targets=targets,
        value=value if kept.weight is None else np.nan,
        options=kept.kind.options,
        answers=answers(kept.kind.function, scores, targets, of_indices=bool(kept.kind.sparse)),
        hits=hits_of_call(kept.kind.function, *align_shapes(kept), class_axis=-1, ignored=ignored),
    )


def losses_of_rows(kept: KeptLoss, run: Any = None) -> np.ndarray | None:
    """The loss of each row (mean over its other axes) by the same function and options; None if it has none.

    Args:
        run: calls the loss, if training compiles it.
    """
    each = copy.copy(kept.loss)
    each.reduction = "none"
    try:
        values = (run or (lambda f, *a: f(*a)))(each, kept.targets, kept.scores)
        array = tensors.to_numpy(values).astype(np.float64)
    except Exception:  # the call itself raised, or has no such form: rows are tried singly
        return _row_by_row(kept)
    if not array.ndim or not array.size:
        return None
    return np.asarray(array.reshape(len(array), -1).mean(1))


def _row_by_row(kept: KeptLoss) -> np.ndarray | None:
    """The loss of each row by itself; NaN for a row that raises. None if all do."""
    scores, targets = tensors.to_numpy(kept.scores), tensors.to_numpy(kept.targets)
    if scores.ndim == 0 or targets.ndim == 0 or len(scores) != len(targets) or len(scores) > 64:
        return None
    found = []
    for i in range(len(scores)):
        try:
            value = kept.loss(targets[i : i + 1], scores[i : i + 1])
            found.append(float(tensors.to_numpy(value).mean()))
        except Exception:  # this row's loss cannot be computed
            found.append(float("nan"))
    return None if all(x != x for x in found) else np.asarray(found)
