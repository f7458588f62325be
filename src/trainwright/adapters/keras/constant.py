"""What a constant prediction would lose on the same rows of a Keras model, and the least that any prediction can lose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainwright.seams.keras.loss import CLASS_LOSSES, KeptLoss
from trainwright.tensors.keras import objects as tensors

# A loss that differs by more from its one call of a loss function has further terms.
SAME_WITHIN = 1e-3
_DISTANCES = ("mse_loss", "l1_loss", "huber_loss")


def answers(kept: KeptLoss) -> tuple[list[int], list[int]]:
    """Predicted and true classes of a loss call; empty where it is no classification of rows."""
    scores, targets = tensors.to_numpy(kept.scores), tensors.to_numpy(kept.targets)
    if scores.ndim == 2 and scores.shape[1] > 1 and len(scores) == len(targets):
        one_hot = targets.shape == scores.shape and bool(((targets == 0) | (targets == 1)).all())
        labels = _labels(targets, scores.shape[1])
        if labels is not None and (one_hot or kept.kind.function in CLASS_LOSSES):
            return scores.argmax(1).tolist(), labels.tolist()
    if kept.kind.function.startswith("binary_cross_entropy") and scores.size == len(scores) == targets.size:
        middle = 0.0 if kept.kind.from_logits else 0.5
        return (scores.reshape(-1) > middle).astype(int).tolist(), targets.reshape(-1).astype(int).tolist()
    return [], []


def _labels(targets: np.ndarray, width: int) -> np.ndarray | None:
    """One class a row, of indices or one-hot rows."""
    if targets.shape == (len(targets), width) and bool((targets.sum(1) == 1).all()):
        return np.asarray(targets.argmax(1))
    return targets.reshape(-1).astype(np.int64) if targets.size == len(targets) else None


def constant_and_floor(
    batches: Sequence[Sequence[KeptLoss]], losses: Sequence[float]
) -> tuple[float | None, float]:
    """The loss of the best constant prediction, and the least possible one; None and 0 where they cannot be told.

    Args:
        batches: the loss calls of each batch; only a single call that is the whole loss can be judged.
        losses: the script's loss of each batch.
    """
    if not batches or any(len(calls) != 1 for calls in batches):
        return None, 0.0
    calls = [c[0] for c in batches]
    values = [float(tensors.to_numpy(c.value).mean()) if c.value is not None else np.nan for c in calls]
    if any(not abs(v - loss) <= SAME_WITHIN * abs(loss) for v, loss in zip(values, losses)):
        return None, 0.0
    if any(c.kind != calls[0].kind or c.weight is not None for c in calls):
        return None, 0.0
    if calls[0].kind.options.get("reduction", "mean") != "mean":
        return None, 0.0
    return _judge(calls[0], [(tensors.to_numpy(c.scores), tensors.to_numpy(c.targets)) for c in calls])


def _judge(call: KeptLoss, pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float | None, float]:
    function, width = call.kind.function, pairs[0][0].shape[-1] if pairs[0][0].ndim else 1
    if function in CLASS_LOSSES:
        return _classes(call, [t for _, t in pairs], width)
    if any(s.size != t.size for s, t in pairs):
        return None, 0.0
    joined = np.concatenate([t.reshape(len(t), -1) for _, t in pairs]).astype(np.float64)
    if function in _DISTANCES:
        return min(
            _distance(call, np.broadcast_to(m, joined.shape), joined)
            for m in (joined.mean(0), np.median(joined, axis=0))
        ), 0.0
    if function.startswith("binary_cross_entropy") and not call.kind.options.get("label_smoothing"):
        if joined.min() < 0 or joined.max() > 1:
            return None, 0.0
        return float(_bits(joined.mean(0)).mean()), float(_bits(joined).mean())
    return None, 0.0


def _classes(call: KeptLoss, targets: list[np.ndarray], width: int) -> tuple[float | None, float]:
    if call.kind.options.get("label_smoothing"):
        return None, 0.0
    if call.kind.sparse:
        labels = np.concatenate([t.reshape(-1) for t in targets]).astype(np.int64)
        ignored = call.kind.options.get("ignore_index")
        labels = labels[labels != ignored] if ignored is not None else labels
        if not labels.size or labels.min() < 0 or labels.max() >= width:
            return None, 0.0
        share = np.bincount(labels, minlength=width) / labels.size
        return float(_entropy(share)), 0.0
    rows = np.concatenate([t.reshape(-1, t.shape[-1]) for t in targets]).astype(np.float64)
    return float(_entropy(rows.mean(0))), float(np.mean([_entropy(r) for r in rows]))


def _entropy(share: np.ndarray) -> float:
    """The least cross-entropy of one prediction for such shares, which sum to more than one for several labels a row."""
    share = share[share > 0]
    return float(-(share * np.log(share / share.sum())).sum())


def _bits(share: np.ndarray) -> np.ndarray:
    kept = np.clip(share, 1e-12, 1 - 1e-12)
    entropy = -(kept * np.log(kept) + (1 - kept) * np.log(1 - kept))
    return np.asarray(entropy * ((share > 0) & (share < 1)))


def _distance(call: KeptLoss, predictions: np.ndarray, targets: np.ndarray) -> float:
    value: Any = call.loss(targets.astype(np.float32), np.ascontiguousarray(predictions, dtype=np.float32))
    return float(tensors.to_numpy(value).mean())
