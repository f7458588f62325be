"""TW703 training-mode-evaluation: the model is evaluated with dropout or batch statistics, as in training.

Why it matters: The metrics change from one evaluation to the next, are too low, and select the wrong checkpoint.
Evidence: Dropout that was active, or batch normalization with the statistics of the current batch, during the
evaluation; the same batch evaluated twice.
Fix (safe): Leave the model in evaluation mode. Pass training=self.training to functional dropout.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Fate, Finding, Fix, Place, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import EvaluationFacts, SetupFacts

_SAYS = {"dropout": "active dropout", "batch_norm": "the statistics of the batch in batch_norm"}
_OVERRIDES = ("prediction_step", "evaluate", "compute_loss")


@rule("TW703", Severity.WARNING, foretells=Fate.SCORES_IN_TRAINING_MODE)
def training_mode_evaluation(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Training-only operations that ran during the evaluation and changed its results."""
    kinds = sorted({n.operation for n in evaluation.active_noise})
    if not kinds or (kinds == ["dropout"] and evaluation.repeatable is not False):
        return
    called = evaluation.train_call
    of_loop = evaluation.evaluated_at[0] if evaluation.in_loop and evaluation.evaluated_at else None
    functional = not evaluation.training_mode and called is None
    if functional:
        does = (
            "pass training=self.training to the functional dropout"
            if "dropout" in kinds
            else ("pass training=self.training to the functional batch_norm")
        )
    elif of_loop is not None:
        does = "call model.eval() before the evaluation, and model.train() before training continues"
    else:
        does = "remove model.train() from the evaluation"
    differ = (
        "the same batch, evaluated twice, gave different predictions"
        if evaluation.repeatable is False
        else ("batch_norm used the statistics of the evaluation batch")
    )
    yield Finding(
        message="the model was evaluated with " + " and ".join(_SAYS[k] for k in kinds),
        measured={"active": ", ".join(kinds), "training_mode": int(evaluation.training_mode)},
        where=called or _inside(evaluation) or of_loop or _override(setup) or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(differ),
        repair=Repair("put the model in evaluation mode during the evaluation", Seam.EVALUATION, _evaluate)
        if of_loop and not functional
        else None,
        fix=Fix(does=does, safety=Safety.SAFE),
    )


def _evaluate(call: Call) -> Call:
    return call.replace(evaluating=True)


def _inside(evaluation: EvaluationFacts) -> Place | None:
    """The user's line that ran the operation, if the model is in evaluation mode."""
    if evaluation.training_mode:
        return None
    return next((n.where for n in evaluation.active_noise if n.where), None)


def _override(setup: SetupFacts) -> Place | None:
    return next((o.where for name in _OVERRIDES for o in setup.overrides if o.name == name), None)
