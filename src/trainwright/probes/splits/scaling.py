"""Whether the evaluation inputs are scaled like the training inputs, and how much the difference harms a probe.

The probe is kernel ridge regression, fitted to the training rows. It predicts the evaluation rows unchanged, and again
with the differing features rescaled to the training mean and deviation. Nothing else differs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainwright.probes.ridge import kernel_of, ridge, standardise
from trainwright.stages import Scaling

# One set's deviation is this many times the other's, or the means are this many training deviations apart.
FAR = 10.0
# If one feature is far off, others that are off by this much were not scaled either.
OFF = 3.0
# If more than this share of the features is off, the whole set was not scaled.
MOST = 0.5
# Scaled inputs, of any usual kind (0 to 1, -1 to 1, standardized), have means and deviations within this.
SCALED_MEAN, SCALED_DEVIATION = 1.5, 2.5
# One factor for all features: at least this large, with quartiles this close together in units of it, over so many features.
FACTOR, ALIKE, FEWEST_ALIKE = 2.0, 0.25, 8
# In vectors up to this length, each value is a feature; the values of longer rows, images and signals share one scale.
MOST_FEATURES = 512
# Von Neumann's ratio for windows of a slow series read in order is below this.
IN_ORDER = 0.3
FEWEST_TRAINED, FEWEST_EVALUATED = 60, 30
# Rows for the probe: 0.3 s on one core.
MOST_ROWS = 1_000
# A squared error, in units of the targets' variance, that no prediction within their range reaches.
LARGEST_ERROR = 9.0

Table = tuple[str, np.ndarray, np.ndarray]
"""A column's name, and its values (rows, values) in training and evaluation."""


def measure_scaling(tables: Sequence[Table], trained: np.ndarray, evaluated: np.ndarray, kind: str) -> Scaling | None:
    """Return how the scale of the evaluation inputs differs from training; None if it does not, or if unknown.

    Args:
        trained: the targets of the training rows, (rows, 1).
        evaluated: the targets of the evaluation rows.
        kind: `class` or `real`, as in `LabelFacts`.
    """
    usable: list[Table] = [
        (name, _finite(left), _finite(right))
        for name, left, right in tables
        if left.shape[1] == right.shape[1]
        and "f" in (left.dtype.kind, right.dtype.kind)  # whole numbers in both sets may be tokens or categories
    ]
    if not usable or trained.shape[1] != 1 or evaluated.shape[1] != 1:
        return None
    if len(trained) < FEWEST_TRAINED or len(evaluated) < FEWEST_EVALUATED:
        return None
    left = np.concatenate([t for _, t, _ in usable], axis=1)
    right = np.concatenate([t for _, _, t in usable], axis=1)
    own = np.concatenate([_scale(t) for _, t, _ in usable], axis=1)
    other = np.concatenate([_scale(t) for _, _, t in usable], axis=1)
    distance = _distance(own, other)
    far = distance >= FAR
    if not (far.any() or _by_one_factor(own, other)) or not (_is_scaled(own) or _is_scaled(other)):
        return None
    if _in_order(left) or _in_order(right):  # a series: what was read of it is one stretch, not the set
        return None
    worst = int(np.argmax(distance))
    targets = _targets(trained, evaluated, kind)
    before, after, nothing = _errors(left, right, own, _rescaled(own, other, distance), *targets)
    gains = np.minimum(before.mean(), nothing.mean()) - after
    names = [n for n, t, _ in usable for _ in range(t.shape[1])]
    return Scaling(
        column=names[worst],
        far_share=float(far.mean()),
        mean=float(own[0, worst]),
        deviation=float(own[1, worst]),
        evaluation_mean=float(other[0, worst]),
        evaluation_deviation=float(other[1, worst]),
        training_is_scaled=_is_scaled(own),
        error=float(before.mean()),
        error_rescaled=float(after.mean()),
        gain=float(gains.mean()),
        gain_deviations=float(gains.mean() / ((gains.std(ddof=1) or 1e-12) / len(gains) ** 0.5)),
        rows=len(gains),
    )


def _finite(table: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(table), table, 0.0).astype(np.float64)


def _scale(table: np.ndarray) -> np.ndarray:
    """(2, values): mean and deviation of each feature, or of all values of an image or signal."""
    if table.shape[1] <= MOST_FEATURES:
        return np.stack([table.mean(axis=0), table.std(axis=0)])
    return np.repeat([[table.mean()], [table.std()]], table.shape[1], axis=1)


def _distance(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distance between the means in training deviations or the ratio of the deviations, whichever is larger; 0 if a
    feature does not vary."""
    vary = (own[1] > 0) & (other[1] > 0)
    low, high = (np.where(vary, f(own[1], other[1]), 1.0) for f in (np.minimum, np.maximum))
    apart = np.abs(own[0] - other[0]) / np.where(vary, own[1], 1.0)
    return np.asarray(np.where(vary, np.maximum(apart, high / low), 0.0))


def _by_one_factor(own: np.ndarray, other: np.ndarray) -> bool:
    """Whether all features differ by about the same factor, as where one set lacks a normalization; drifts do not."""
    vary = (own[1] > 0) & (other[1] > 0)
    if vary.sum() < FEWEST_ALIKE:
        return False
    low, middle, high = np.percentile(other[1][vary] / own[1][vary], (25, 50, 75))
    return not 1 / FACTOR < middle < FACTOR and high - low < ALIKE * middle


def _rescaled(own: np.ndarray, other: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The scale of each evaluation feature: its own where it is off, and of all features where most of them are off."""
    vary = (own[1] > 0) & (other[1] > 0)
    if _by_one_factor(own, other) or (distance[vary] >= OFF).mean() > MOST:
        return other
    return np.where(distance >= OFF, other, own)


def _in_order(table: np.ndarray) -> bool:
    """Whether each row resembles the one before it (von Neumann's ratio, which is 2 for independent rows)."""
    spread = table.var(axis=0)
    ratios = (np.diff(table, axis=0) ** 2).mean(axis=0)[spread > 0] / spread[spread > 0]
    return bool(ratios.size) and float(np.median(ratios)) < IN_ORDER


def _is_scaled(scale: np.ndarray) -> bool:
    return bool((np.abs(scale[0]) <= SCALED_MEAN).all() and (scale[1] <= SCALED_DEVIATION).all())


def _errors(
    left: np.ndarray, right: np.ndarray, own: np.ndarray, other: np.ndarray, trained: np.ndarray, evaluated: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The squared error on each evaluation row: unchanged, rescaled, and when predicting the training mean.

    Of two probes, these are the errors of the one that is better on the rescaled rows.
    """
    random = np.random.default_rng(0)
    rows, held = (np.sort(random.permutation(len(t))[:MOST_ROWS]) for t in (left, right))
    fitted = standardise(left[rows], *own)
    asked = [standardise(right[held], *scale) for scale in (own, other)]
    targets, wanted = trained[rows], evaluated[held]
    found = []
    for width in (0.0, 1.0):
        weights, _ = ridge(kernel_of(fitted, fitted, width), targets)
        answers = [*(kernel_of(a, fitted, width) @ weights for a in asked), np.zeros_like(wanted)]
        found.append([np.minimum(((a - wanted) ** 2).mean(axis=1), LARGEST_ERROR) for a in answers])
    before, after, nothing = min(found, key=lambda errors: float(errors[1].mean()))
    return before, after, nothing


def _targets(trained: np.ndarray, evaluated: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Both sets' targets (rows, columns), standardized on training: a column per class, or the numbers themselves."""
    if kind == "class":
        classes = np.unique(trained)
        trained, evaluated = ((t == classes[None]).astype(np.float64) for t in (trained, evaluated))
    mean, deviation = trained.mean(axis=0), trained.std(axis=0)
    safe = np.where(deviation > 0, deviation, 1.0)
    return (trained - mean) / safe, (evaluated - mean) / safe
