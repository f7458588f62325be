"""TW1021 apart-transforms: a row's input and its target are turned, mirrored or shifted apart.

Why it matters: A mask that is mirrored when its picture is not labels the wrong places. The loss still falls, as some rows fit by
chance, and the model learns a blur.
Evidence: Two draws of the same row: the turn, mirroring or shift that relates the two inputs does not relate the two targets, and
the other way around. Rows whose targets look the same either way say nothing.
Fix (manual): Draw the random numbers once a row and apply them to both: `transform(image, tv_tensors.Mask(mask))` in
torchvision.transforms.v2, `transform(image=image, mask=mask)` in albumentations, one seed for both in Keras.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Floats, Record
from trainwright.rehearsal.record_parts import DrawnAgain

# Both draws of both are the same but for the turn and the shift, as far as correlation says; none relates both, if so much of it
# must be given up. Made-up pictures with noise: turned together at most 0.02 where nothing is cut off, apart 0.6 in the median.
FITS, APART = 0.85, 0.25
# A target that fits the input so well is the input itself, or another view of it, as it may be meant.
SAME = 0.7
# Pairs that must be related, of these the share that is apart, and pairs that are looked at.
FEWEST, SHARE, MOST_PAIRS = 12, 0.2, 80
# Turns by other angles than a quarter are tried up to this one in such steps, where the others fit less well.
MOST_DEGREES, STEP, FITS_WELL = 45, 9, 0.9
# The second pair may be shifted by so large a share of a side beside the first one: a small shift of the input alone is no fault.
BESIDE = 0.05
# What a shift leaves of both arrays must be so large a share of them, with so much of their variance.
LEAST_OVERLAP, LEAST_VARIANCE = 0.5, 0.2


@rule("TW1021", Severity.WARNING, after="TW1006")
def apart_transforms(record: Record) -> Iterator[Finding]:
    """Augmentation that draws anew for the target."""
    found: dict[object, list[DrawnAgain]] = {}
    for one in record.drawn_again:  # a set that is made anew each epoch is the same
        found.setdefault((one.columns, one.where), []).append(one)
    for same in found.values():
        related, apart = _count([pair for one in same for pair in one.pairs])
        if related >= FEWEST and apart >= max(SHARE * related, FEWEST / 2):
            x, y = same[0].columns
            yield Finding(
                message=f"columns {x} and {y} of a row are turned, mirrored or shifted apart in {apart} of {related} pairs of draws: no "
                "one movement explains both",
                measured={"pairs": related, "apart": apart},
                where=same[0].where,
                proof=Proof(
                    f"{related} pairs of draws of the same rows; in each, one movement explains {x}, and one {y}"
                ),
                fix=Fix(does="draw the random numbers once a row, and apply them to input and target alike"),
            )
            return


def _count(pairs: list[tuple[Floats, Floats, Floats, Floats]]) -> tuple[int, int]:
    """Pairs whose halves are both related, and those of them that no one movement explains."""
    related = apart = 0
    for x, other_x, y, other_y in pairs[:: -(-len(pairs) // MOST_PAIRS)]:
        fit, fit_y, lost = _common_fit((x, other_x), (y, other_y))
        if min(fit, fit_y) >= FITS:
            related += 1
            apart += lost > APART and min(_common_fit((x, y), (other_x, other_y))[:2]) < SAME
    return related, apart


def _common_fit(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[float, float, float]:
    """How well a turn with a shift relates the first two arrays at best, how well the second two, and what must be given
    up for one that relates both.

    A fit is the correlation over what overlaps, computed for all shifts at once (Padfield, "Masked object registration in
    the Fourier domain", 2012).
    """
    fits = [_fits(*pair, turn=False) for pair in (first, second)]
    if min(fits[0].max(), fits[1].max()) < FITS_WELL and min(first[0].shape) > 1:
        fits = [np.concatenate([fit, _fits(*pair, turn=True)]) for fit, pair in zip(fits, (first, second))]
    best, best_other = float(fits[0].max()), float(fits[1].max())
    return best, best_other, float(np.maximum(best - fits[0], best_other - _nearby(fits[1])).min())


def _nearby(fits: Floats) -> Floats:
    """The best fit near each shift."""
    for axis in (1, 2):
        most = int(np.ceil(BESIDE * fits.shape[axis] / 2)) if fits.shape[axis] > 2 else 0
        fits = np.maximum.reduce([np.roll(fits, step, axis) for step in range(-most, most + 1)])
    return fits


def _fits(before: Floats, after: Floats, *, turn: bool) -> Floats:
    """(turns, shifts down, shifts right) the correlation's size."""
    height, width = after.shape
    size = (2 * height, 2 * width)
    turned, inside = _by_angles(before) if turn else _by_quarters(before)
    turned = (turned - before.mean()) * inside
    centred = after - after.mean()
    within, ones, a, a2, b, b2 = (
        np.fft.rfft2(one, size) for one in (inside, np.ones_like(after), turned, turned**2, centred, centred**2)
    )

    def summed(left: Any, right: Any) -> Floats:
        found: Floats = np.fft.irfft2(np.conj(left) * right, size)
        return found

    count = np.maximum(np.rint(summed(within, ones)), 1)
    of_a, of_b = summed(a, ones), summed(within, b)
    spread_a, spread_b = summed(a2, ones) - of_a**2 / count, summed(within, b2) - of_b**2 / count
    least = LEAST_VARIANCE * height * width * np.array([before.var(), after.var()]) + 1e-9
    is_known = (count >= LEAST_OVERLAP * height * width) & (spread_a > least[0]) & (spread_b > least[1])
    product = np.where(is_known, spread_a * spread_b, 1.0)
    found: Floats = np.where(is_known, np.abs(summed(a, b) - of_a * of_b / count) / np.sqrt(product), 0.0)
    return found


def _by_quarters(plane: Floats) -> tuple[Floats, Floats]:
    """Mirrored and turned by quarters, with where each has values."""
    mirrored = [plane, plane[::-1], plane[:, ::-1], plane[::-1, ::-1]]
    if plane.shape[0] == plane.shape[1]:
        mirrored += [one.T for one in mirrored]
    stacked = np.stack(mirrored)
    return stacked, np.ones_like(stacked)


def _by_angles(plane: Floats) -> tuple[Floats, Floats]:
    """Turned by other angles, as it is and mirrored, with where each has values."""
    (height, width), (y, x) = plane.shape, np.indices(plane.shape)
    y, x = y - (height - 1) / 2, x - (width - 1) / 2
    turned = []
    for degrees in range(-MOST_DEGREES, MOST_DEGREES + 1, STEP):
        sine, cosine = np.sin(np.deg2rad(degrees)), np.cos(np.deg2rad(degrees))
        down = np.rint(cosine * y - sine * x + (height - 1) / 2).astype(int)
        right = np.rint(sine * y + cosine * x + (width - 1) / 2).astype(int)
        inside = (down >= 0) & (down < height) & (right >= 0) & (right < width)
        at = down.clip(0, height - 1), right.clip(0, width - 1)
        turned += [(np.where(inside, one[at], 0.0), inside.astype(float)) for one in (plane, plane[:, ::-1])]
    return np.stack([one for one, _ in turned]), np.stack([inside for _, inside in turned])
