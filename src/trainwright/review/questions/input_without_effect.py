"""TW1008 input-without-effect: an input of the model has no effect on its answers.

Why it matters: What this input tells is not used: a branch is overwritten, multiplied by zero, detached or passed under another
name.
Evidence: After the run, in evaluation mode, this input was exchanged between the rows; no answer changed.
Fix (manual): Follow the input through forward; if it is not needed, do not pass it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record
from trainwright.review.rows import trained_models

# Relative to the mean answer: rounding is above it if anything is computed with the input.
NO_CHANGE = 1e-6
FEWEST_ROWS = 4
# What another input does to the mean answer, to show that the probe works.
LEAST_EFFECT = 1e-3
# Inputs that need not matter: masks of rows of one length, what a model passes on, labels among the arguments.
_BESIDE = re.compile(r"mask|label|target|length|position|token_type|index|\bids?\b|weight|step")


@rule("TW1008", Severity.WARNING)
def input_without_effect(record: Record) -> Iterator[Finding]:
    """An input that can be exchanged between rows without a change."""
    models = trained_models(record)
    probes = [one for one in record.probes if one.model in models and one.change.startswith("input ")]
    for probe in probes:
        name = probe.change.removeprefix("input ")
        others = [one for one in probes if one.model == probe.model and one.change != probe.change]
        if probe.rows < FEWEST_ROWS or probe.effect >= NO_CHANGE:
            continue
        if not any(one.effect > LEAST_EFFECT for one in others):
            continue  # the probe may not have met what the model answers by
        which = f"the input {name}" if not name.isdigit() else f"input {int(name) + 1}"
        yield Finding(
            severity=Severity.NOTE if _BESIDE.search(name.lower()) else Severity.WARNING,
            message=f"{which} has no effect: exchanged between {probe.rows} rows, no answer changes, by "
            f"{max(one.effect for one in others):.2g} with another input",
            measured={"change": probe.effect, "rows": probe.rows},
            proof=Proof("the trained model was asked again, in evaluation mode, with this input in another order"),
            fix=Fix(
                does=f"follow {which} through forward: overwritten, multiplied by zero, or passed under another name"
            ),
        )
        return
