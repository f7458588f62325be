"""Helpers for rules about a metric function's results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainwright.core import Call, Repair, Seam
from trainwright.stages import IGNORED_LABEL, EvaluationFacts, SubstitutePredictions

# Parts of a metric's name that say where and when it was measured.
_WHERE_AND_WHEN = ("val", "valid", "validation", "train", "training", "test", "eval", "dev", "epoch", "step", "avg",
                   "mean", "top", "top1", "top5", "micro", "macro", "weighted")  # fmt: skip
_LOSSES = ("loss", "mse", "rmse", "mae", "perplexity", "nll", "wer", "cer")
_SCORES = ("acc", "accuracy", "f", "auc", "auroc", "precision", "recall", "iou", "miou", "dice", "bleu", "psnr")
_REVERSED = ("neg", "negative", "minus", "inverse", "inv", "drop", "gap", "diff", "delta")
# Metrics are means of 0 and 1 in double precision; smaller differences are rounding.
EQUAL_WITHIN = 1e-6


def equal(left: float, right: float) -> bool:
    """Whether two values of a metric are the same except for rounding."""
    return abs(left - right) <= EQUAL_WITHIN


def shapes(evaluation: EvaluationFacts) -> str:
    """The metric function's arguments: "scores of shape (32, 3) and labels of shape (32,)"."""
    given = " and ".join(str(p.shape) for p in evaluation.predictions)
    several = len(evaluation.predictions)
    scores = f"a tuple of {several} outputs of shapes {given}" if several > 1 else f"scores of shape {given}"
    return scores + (f" and labels of shape {evaluation.labels.shape}" if evaluation.labels else "")


def insensitive(evaluation: EvaluationFacts) -> bool:
    """Whether the metrics are the same for perfect predictions, their opposite and the model's predictions."""
    perfect, inverted = evaluation.when(SubstitutePredictions.PERFECT), evaluation.when(SubstitutePredictions.INVERTED)
    return bool(perfect) and same(perfect, inverted) and same(perfect, evaluation.returned)


def same(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Whether two results have the same names and values."""
    return left.keys() == right.keys() and all(equal(v, right[k]) for k, v in left.items())


def first_of(answers: Mapping[str, float]) -> str:
    """The first metric of a result: "accuracy = 0.8125"."""
    return next((f"{name} = {value:.4g}" for name, value in answers.items()), "nothing")


def greater_by_name(name: str) -> bool | None:
    """Whether a metric of this name is better when it is greater: val_loss, valid/acc_epoch; None if it says neither."""
    words = [w.rstrip("0123456789") for w in re.split(r"[^a-z0-9]+", name.lower()) if w not in _WHERE_AND_WHEN]
    words = [w for w in words if w]
    if not words or any(w in _REVERSED for w in words):
        return None
    last = words[-1]
    return False if last in _LOSSES or last.endswith("loss") else True if last in _SCORES else None


def is_class_metric(name: str) -> bool:
    """Whether a metric's name suggests that it counts equal classes."""
    words = ("accuracy", "acc", "f1", "precision", "recall", "exact_match")
    return any(part in words for part in name.lower().replace("-", "_").split("_")) or "accuracy" in name.lower()


def take_first_output() -> Repair:
    """Pass only the first output to the metric function."""

    return Repair(
        "pass only the first output to the metrics",
        Seam.METRICS,
        lambda call: call.replace(predictions=call["predictions"][0]),
    )


def align() -> Repair:
    """Pass predictions in the labels' shape to the metric function."""

    def change(call: Call) -> Call:
        scores: Any = call["predictions"]
        scores = scores[0] if isinstance(scores, tuple) else scores
        if scores.size != call["labels"].size:  # another repair gave it more columns
            return call
        return call.replace(predictions=scores.reshape(call["labels"].shape))

    return Repair("pass predictions in the shape of the labels to the metrics", Seam.METRICS, change)


def fill_ignored() -> Repair:
    """Pass 0 instead of -100 as labels to the metric function."""

    return Repair(
        "pass 0 to the metrics for labels of -100",
        Seam.METRICS,
        lambda call: call.replace(labels=np.where(call["labels"] == IGNORED_LABEL, 0, call["labels"])),
    )
