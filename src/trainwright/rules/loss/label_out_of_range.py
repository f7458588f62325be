"""TW401 label-out-of-range: a label lies outside the scores that the model's head gives.

Why it matters: on a CPU the loss stops with an index, on a GPU with a device-side assert far from its cause, and
under a compiler it becomes NaN without any error.
Evidence: the census of all labels against the width of the head; with a head of that width the loss is finite.
Error: `Target … is out of bounds.`
Error: `device-side assert triggered`
Error: `Received a label value of`
Fix (safe): give the model as many outputs as there are labels, or renumber the labels from 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.dataset import DatasetFacts, LabelFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.setup import SetupFacts


@rule("TW401", Severity.ERROR)
def label_out_of_range(
    dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts
) -> Iterator[Finding]:
    """A class label that is negative, or not below the number of scores."""
    width = loss.classes
    call = loss.call
    labels = _census(dataset)
    if width is None or call is None or call.function not in ("cross_entropy", "nll_loss"):
        return
    ignored = call.options.get("ignore_index", -100)
    seen = [v for v in (labels.census if labels else call.target_values) if v != ignored]
    outside = sorted(v for v in seen if isinstance(v, (int, float)) and not 0 <= v < width)
    if not outside:
        return
    largest, smallest = int(max(seen)), int(min(seen))
    row = f", first in row {labels.first_rows[outside[0]]}" if labels and outside[0] in labels.first_rows else ""
    measured = {"outputs": width, "smallest_label": smallest, "largest_label": largest}
    if smallest >= 0:
        classes = largest + 1
        yield Finding(
            message=f"the model has {width} outputs, and labels go up to {largest}{row}: it needs {classes}",
            measured={**measured, "needed_outputs": classes},
            where=setup.place("num_labels", "model", "trainer"),
            repair=_widen(classes),
            fix=Fix(does=f"give the model {classes} outputs (num_labels={classes})", safety=Safety.SAFE),
        )
    else:
        yield Finding(
            message=f"labels start at {smallest}{row}; the loss takes 0 to {width - 1}, or {ignored} for no label",
            measured=measured,
            where=setup.place("train_dataset_made", "train_dataset", "trainer"),
            fix=Fix(does=f"renumber the labels from 0, or mark rows without a label with {ignored}"),
        )


def _census(dataset: DatasetFacts) -> LabelFacts | None:
    labels = dataset.train.labels
    return labels if labels and labels.kind in ("class", "tokens") else None


def _widen(classes: int) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.widen_head(call["model"], classes)
        return call

    return Repair(f"give the head {classes} outputs", Seam.TRAINER, change)
