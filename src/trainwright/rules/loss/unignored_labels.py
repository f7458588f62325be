"""TW423 unignored-labels: rows without a label are marked by a number that the loss does not ignore.

Why it matters: The loss treats the marker as a class and raises an index error or fails a device-side assert; under a
compiler it becomes NaN without any error.
Evidence: The counts of all labels: every class has an output, and -1 also occurs; without these rows the loss is
finite.
Error: `Target -1 is out of bounds.`
Fix (unsafe): Mark the rows with the number that the loss ignores, or remove them from the data.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Role, Safety, Severity, role_of_split, rule
from trainwright.rules.class_labels import OF_CLASSES, labels_out_of_range, renumber
from trainwright.stages import DatasetFacts, ForwardFacts, LossFacts, SetupFacts


@rule("TW423", Severity.ERROR, after="TW401")
def unignored_labels(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """Labels with one more number than there are classes with a score."""
    labels = labels_out_of_range(dataset, forward, loss)
    if labels is None or labels.numbers is None or not labels.are_unlabelled or labels.for_binary_loss:
        return
    seen, role, ignored = labels.seen, role_of_split(labels.split), loss.ignored_label
    or_none = "" if ignored is None else f", or {ignored} for no label"
    yield Finding(
        message=f"labels run from {seen[0]} to {seen[-1]}{labels.row}; the loss takes 0 to {labels.width - 1}{or_none}",
        measured={"outputs": labels.width, "smallest_label": seen[0], "largest_label": seen[-1]},
        where=setup.place(role.made, role, Role.TRAINER),
        repair=None if ignored is None else renumber(labels.numbers, OF_CLASSES),
        fix=Fix(does=setup.words.unlabelled_rows.format(label=seen[0]), safety=Safety.UNSAFE),
    )
