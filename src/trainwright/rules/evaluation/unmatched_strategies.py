"""TW717 unmatched-strategies: load_best_model_at_end is set, but the model is not saved when it is evaluated.

Why it matters: The script stops before training, and the message does not say which setting to change.
Evidence: When the script evaluates and when it saves.
Error: `load_best_model_at_end requires the save and eval strategy to match`
Error: `load_best_model_at_end requires the saving steps to be a round multiple`
Fix (safe): Evaluate and save at the same steps or epochs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from trainwright.core import Fate, Finding, Fix, Place, Proof, Safety, Seam, Severity, rule
from trainwright.rules.best_metric import edit_of_arguments, set_arguments
from trainwright.stages import RefusedCall, SetupFacts

_DEFAULTS = {"eval_strategy": "no", "save_strategy": "steps", "eval_steps": None, "save_steps": 500}
# The number of steps between two evaluations if the script does not set it.
_EVERY = 500


@rule("TW717", Severity.ERROR, foretells=Fate.STOPS)
def unmatched_strategies(setup: SetupFacts) -> Iterator[Finding]:
    """Settings that the framework rejected because saved checkpoints would have no metric to be compared by."""
    refused = setup.refused
    if refused is None or "load_best_model_at_end requires" not in refused.failure.message:
        return
    given = {**_DEFAULTS, **{k: v for k, v in refused.given.items() if k in _DEFAULTS}}
    of_steps = "strategy to match" not in refused.failure.message
    name, value = _matching_steps(given) if of_steps else _matching_strategy(given)
    seen = (
        f"save_steps is {given['save_steps']}, which is not a multiple of eval_steps, {given['eval_steps'] or _EVERY}"
        if of_steps
        else f"eval_strategy is {given['eval_strategy']!r} while save_strategy is {given['save_strategy']!r}"
    )
    at = _place(refused, name)
    yield Finding(
        message=f"load_best_model_at_end is set, but {seen}",
        measured={k: v for k, v in given.items() if isinstance(v, (int, float, str))},
        where=at,
        proof=Proof(f"{refused.function} raised {refused.failure.type}: only evaluated checkpoints can be compared"),
        repair=set_arguments(Seam.CONSTRUCT, **{name: value}) if refused.repairable else None,
        fix=Fix(
            does=f"write {name}={value!r}",
            safety=Safety.SAFE,
            edits=edit_of_arguments(at, name, repr(value), refused.function),
        ),
    )


def _matching_strategy(given: Mapping[str, Any]) -> tuple[str, Any]:
    if given["eval_strategy"] not in ("no", None):
        return "save_strategy", given["eval_strategy"]
    return "eval_strategy", "epoch" if given["save_strategy"] == "no" else given["save_strategy"]


def _matching_steps(given: Mapping[str, Any]) -> tuple[str, Any]:
    step, every = given["eval_steps"] or _EVERY, given["save_steps"]
    whole = isinstance(step, (int, float)) and step >= 1 and isinstance(every, (int, float))
    return "save_steps", math.ceil(every / step) * int(step) if whole else step


def _place(refused: RefusedCall, name: str) -> Place | None:
    """Where the setting is written, or else a related one."""
    roles = (name, "eval_strategy", "save_strategy", "load_best_model_at_end")
    return next((refused.places[n] for n in roles if n in refused.places), refused.failure.where)
