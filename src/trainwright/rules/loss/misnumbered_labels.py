"""TW422 misnumbered-labels: the labels are not numbered from 0.

Why it matters: There are as many outputs as labels, but the largest label, or the negative one, still raises an index
error or fails a device-side assert; under a compiler the loss becomes NaN without any error.
Evidence: The counts of all labels, compared with the number of outputs; with the labels numbered from 0 the loss is
finite.
Error: `Target … is out of bounds.`
Error: `device-side assert triggered`
Error: `Received a label value of`
Fix (unsafe): Renumber the labels from 0, and map the predictions back the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Role, Safety, Severity, role_of_split, rule
from trainwright.rules.class_labels import OF_CLASSES, labels_out_of_range, renumber
from trainwright.stages import DatasetFacts, ForwardFacts, LossFacts, SetupFacts


@rule("TW422", Severity.ERROR, after="TW401")
def misnumbered_labels(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """Labels that start at 1 or include a negative number, and fit when numbered from 0."""
    labels = labels_out_of_range(dataset, forward, loss)
    if labels is None or labels.numbers is None or labels.are_unlabelled or labels.for_binary_loss:
        return
    seen, role = labels.seen, role_of_split(labels.split)
    or_none = "" if loss.ignored_label is None else f", or {loss.ignored_label} for no label"
    yield Finding(
        message=f"labels run from {seen[0]} to {seen[-1]}{labels.row}; the loss takes 0 to {labels.width - 1}{or_none}",
        measured={"outputs": labels.width, "smallest_label": seen[0], "largest_label": seen[-1]},
        where=setup.place(role.made, role, Role.TRAINER),
        repair=renumber(labels.numbers, OF_CLASSES),
        fix=Fix(does=f"renumber the labels {seen[0]} to {seen[-1]} from 0", safety=Safety.UNSAFE),
    )
