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

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Floats, Record
from trainwright.rehearsal.record_rows import DrawnAgain
from trainwright.review._turns import common_fit

# Both draws of both are the same but for the turn and the shift, as far as correlation says; none relates both, if so much of it
# must be given up. Made-up pictures with noise: turned together at most 0.02 where nothing is cut off, apart 0.6 in the median.
FITS, APART = 0.85, 0.25
# A target that fits the input so well is the input itself, or another view of it, as it may be meant.
SAME = 0.7
# Pairs that must be related, of these the share that is apart, and pairs that are looked at.
FEWEST, SHARE, MOST_PAIRS = 12, 0.2, 80


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
        fit, fit_y, lost = common_fit((x, other_x), (y, other_y))
        if min(fit, fit_y) >= FITS:
            related += 1
            apart += lost > APART and min(common_fit((x, y), (other_x, other_y))[:2]) < SAME
    return related, apart
