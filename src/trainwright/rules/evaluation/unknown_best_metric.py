"""TW710 unknown-best-metric: the best checkpoint is chosen by a metric that nobody computes, or the wrong way round.

Why it matters: the run stops at its first save, or keeps its worst checkpoint as the best.
Evidence: the metrics that the evaluation returned; whether perfect predictions raise or lower the metric.
Error: `load_best_model_at_end requires the save and eval strategy to match`
Error: `load_best_model_at_end requires the saving steps to be a round multiple`
Error: `The `metric_for_best_model` training argument is set to '…', which is not found in the evaluation metrics`
Fix (safe): name a metric that compute_metrics returns, with its direction; save when it is evaluated.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from typing import Any

from trainwright.core.finding import Finding, Place, Proof, Severity
from trainwright.core.fix import Fix, Safety, SetKeyword
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.rules.metrics import equal
from trainwright.stages.evaluation import EvaluationFacts, Given
from trainwright.stages.setup import RefusedCall, SetupFacts

_TIMES = ("runtime", "samples_per_second", "steps_per_second", "model_preparation_time", "epoch")
_DEFAULTS = {"eval_strategy": "no", "save_strategy": "steps", "eval_steps": None, "save_steps": 500}


@rule("TW710", Severity.ERROR)
def unknown_best_metric(setup: SetupFacts, evaluation: EvaluationFacts | None) -> Iterator[Finding]:
    """Strategies that do not match, a metric that is not among those returned, or a wrong direction."""
    refused = setup.refused
    if refused is not None and "load_best_model_at_end requires" in refused.failure.message:
        yield _unmatched(refused)
    if evaluation is None or evaluation.best_metric is None or evaluation.needs_all_rows:
        return
    if evaluation.failure or evaluation.metrics_failure or not evaluation.metrics or not evaluation.planned:
        return
    name = evaluation.best_metric.removeprefix("eval_")
    names = [n for n in (m.removeprefix("eval_") for m in evaluation.metrics) if n not in _TIMES]
    of_set = next((s for s in evaluation.set_names if name.startswith(f"{s}_")), None)
    bare = name.removeprefix(f"{of_set}_") if of_set else name
    if bare not in names or bool(evaluation.set_names) != (of_set is not None):
        known = [f"{s}_{n}" for s in evaluation.set_names or ("",) for n in names]
        yield _unknown(name, [n.lstrip("_") for n in known], evaluation, setup)
        return
    right = greater_is_better(bare, evaluation)
    if right is not None and evaluation.best_greater is not None and right != evaluation.best_greater:
        yield _wrong_way(bare, right, evaluation, setup)


def greater_is_better(name: str, evaluation: EvaluationFacts) -> bool | None:
    """Whether perfect predictions raise the metric; None where that cannot be told."""
    if name == "loss":
        return False
    given = evaluation.when(Given.PERFECT) or evaluation.when(Given.PERFECT_ALIGNED)
    perfect, now = given.get(name), evaluation.returned.get(name)
    if (
        perfect is None
        or now is None
        or not math.isfinite(perfect)
        or not math.isfinite(now)
        or equal(perfect, now)
    ):
        return None
    return perfect > now


def _unknown(name: str, known: list[str], evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
    scores = [n for n in known if not n.endswith("loss")]
    chosen = (near or scores or known or ["loss"])[0]
    greater = greater_is_better(chosen, evaluation)
    greater = not chosen.endswith("loss") if greater is None else greater
    place = setup.place("metric_for_best_model", "load_best_model_at_end", "arguments")
    return Finding(
        message=f"the best checkpoint is to be chosen by {name!r}, and the evaluation returns {', '.join(known)}",
        measured={"metric_for_best_model": name, "returned": ", ".join(known)},
        where=place,
        proof=Proof("the evaluation was run on rows of the evaluation set, and returned no such metric"),
        repair=_set(Seam.TRAINER, metric_for_best_model=chosen, greater_is_better=greater),
        fix=Fix(
            does=f'write metric_for_best_model="{chosen}", or return {name!r} from compute_metrics',
            safety=Safety.UNSAFE,
            edits=_edits(place, "metric_for_best_model", f'"{chosen}"'),
        ),
    )


def _wrong_way(name: str, right: bool, evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    given = evaluation.when(Given.PERFECT) or evaluation.when(Given.PERFECT_ALIGNED)
    proof = "a loss is better when it is smaller"
    if name in given:
        proof = f"{name} is {evaluation.returned[name]:.4g} now, and would be {given[name]:.4g} for perfect predictions"
    place = setup.place("greater_is_better", "metric_for_best_model", "load_best_model_at_end", "arguments")
    return Finding(
        message=f"the checkpoint with the {'smallest' if right else 'greatest'} {name} is kept as the best, and a "
        f"{'greater' if right else 'smaller'} {name} is better",
        measured={"metric_for_best_model": name, "greater_is_better": int(bool(evaluation.best_greater))},
        where=place,
        proof=Proof(proof),
        repair=_set(Seam.TRAINER, greater_is_better=right),
        fix=Fix(does=f"write greater_is_better={right}", safety=Safety.SAFE,
                edits=_edits(place, "greater_is_better", str(right))),
    )  # fmt: skip


def _unmatched(refused: RefusedCall) -> Finding:
    given = {**_DEFAULTS, **{k: v for k, v in refused.given.items() if k in _DEFAULTS}}
    if "strategy to match" in refused.failure.message:
        evaluates = given["eval_strategy"] not in ("no", None)
        name, value = (
            ("save_strategy", given["eval_strategy"])
            if evaluates
            else ("eval_strategy", given["save_strategy"])
        )
        if value == "no":
            value = "epoch"
        message = f"load_best_model_at_end is set, and eval_strategy is {given['eval_strategy']!r} while save_strategy is {given['save_strategy']!r}"
    else:
        step, every = given["eval_steps"] or 500, given["save_steps"]
        whole = isinstance(step, (int, float)) and step >= 1 and isinstance(every, (int, float))
        name, value = "save_steps", math.ceil(every / step) * int(step) if whole else step
        message = (
            f"load_best_model_at_end is set, and save_steps is {every}, no multiple of eval_steps {step}"
        )
    places = refused.places
    written = next(
        (
            places[n]
            for n in (name, "eval_strategy", "save_strategy", "load_best_model_at_end")
            if n in places
        ),
        None,
    )
    at = written or refused.failure.where
    return Finding(
        message=message,
        measured={k: v for k, v in given.items() if isinstance(v, (int, float, str))},
        where=at,
        proof=Proof(
            f"{refused.function} raised {refused.failure.type}: a checkpoint is compared when it is evaluated"
        ),
        repair=_set(Seam.CONSTRUCT, **{name: value}) if refused.repairable else None,
        fix=Fix(does=f"write {name}={value!r}", safety=Safety.SAFE, edits=_edits(at, name, repr(value))),
    )


def _edits(place: Place | None, name: str, value: str) -> tuple[SetKeyword, ...]:
    return (SetKeyword(place.file, place.line, name, value, "TrainingArguments"),) if place else ()


def _set(seam: Seam, **values: Any) -> Repair:
    def change(call: Call) -> Call:
        if seam == Seam.CONSTRUCT:
            return call.replace(**values)
        for name, value in values.items():
            object.__setattr__(call["arguments"], name, value)
        return call

    return Repair("set " + ", ".join(f"{k}={v!r}" for k, v in values.items()), seam, change)
