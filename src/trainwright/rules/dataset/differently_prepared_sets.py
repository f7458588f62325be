"""TW129 differently-prepared-sets: the evaluation inputs are arranged otherwise than the training inputs.

Why it matters: Columns in another order, a picture that lies on its side, or a brightness that is reversed in one set
raise no error. The model is evaluated on inputs of a kind that it never saw, so its scores mean nothing.
Evidence: Either set's labels can be learned from its own inputs. A probe fitted to the training rows does not understand
the evaluation rows, and does once the difference is undone. Where no difference is found that explains it, this is a
note: rows of another origin look the same.
Fix (manual): Prepare both sets by one function: the same columns in the same order, the same transform.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Number, Proof, Role, Severity, rule
from trainwright.rules.dataset.differently_scaled_sets import harms
from trainwright.rules.dataset.split_of_sorted_data import classifies
from trainwright.stages import DatasetFacts, LossFacts, SetupFacts, Transfer


@rule("TW129", Severity.WARNING)
def differently_prepared_sets(dataset: DatasetFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """Evaluation rows that a probe of the training rows does not understand as they are."""
    seen = dataset.transfer
    if seen is None or seen.renumbered or harms(dataset.scaling) or dataset.renumbered is not None:
        return
    if seen.kind == "class" and loss is not None and not classifies(loss):
        return  # learning to compare: evaluation on classes never seen is the usual way there
    measured: dict[str, Number] = {
        "evaluation_rows": seen.rows,
        "gain": round(seen.gain, 4),
        "gain_within_training": round(seen.training_gain, 4),
        "gain_within_evaluation": round(seen.evaluation_gain, 4),
    }
    change = seen.rearranged
    if change is not None:
        measured["gain_rearranged"] = round(change.gain, 4)
    yield Finding(
        severity=Severity.WARNING if change is not None else Severity.NOTE,
        message=f"the evaluation inputs are not prepared like the training inputs: {change.what}"
        if change is not None
        else f"what can be learned from the training rows does not hold for the evaluation rows: {_gains(seen)}",
        measured=measured,
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET)
        or dataset.evaluation_place
        or setup.place(Role.TRAINER),
        proof=Proof(
            f"{_gains(seen)}; with the difference undone it saves {change.gain:.0%}, {change.deviations:.0f} standard "
            "errors more"
        )
        if change is not None
        else None,
        fix=Fix(
            does="prepare both sets by one function: the same columns in the same order, the same transform"
            if change is not None
            else "compare a few rows of both sets: were they made by the same code, and do they come from the same source?"
        ),
    )


def _gains(seen: Transfer) -> str:
    """What a probe learns in each set, and what one of training is worth for evaluation."""
    return (
        f"a probe saves {seen.training_gain:.0%} of a constant prediction's error within the training rows and "
        f"{seen.evaluation_gain:.0%} within the {seen.rows:,} evaluation rows, but {max(seen.gain, 0.0):.0%} where it is "
        "fitted to training and asked about evaluation"
    )
