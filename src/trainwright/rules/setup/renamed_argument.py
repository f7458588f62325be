"""TW001 renamed-argument: a framework was given an argument under a name that it no longer has.

Why it matters: the script stops before training; what was set under the old name is still wanted.
Evidence: the installed version's signature lacks the name, and has its successor.
Error: `got an unexpected keyword argument '…'`
Fix (safe): write the new name; where the argument is gone for good, leave it out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.core.finding import Finding, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.rule import rule
from trainwright.stages.setup import RefusedCall, SetupFacts


@dataclass(frozen=True)
class Successor:
    """What an argument has become: another name, and its value where that changes too; "" for gone."""

    name: str
    note: str = ""


# From the frameworks' changelogs and migration guides (transformers 4.41 to 5.x, accelerate 1.0, Keras 2 and 3).
SUCCESSORS: dict[str, Successor] = {
    "evaluation_strategy": Successor("eval_strategy"),
    "tokenizer": Successor("processing_class"),
    "no_cuda": Successor("use_cpu"),
    "warmup_ratio": Successor("warmup_steps", "a share between 0 and 1 is accepted there"),
    "per_gpu_train_batch_size": Successor("per_device_train_batch_size"),
    "per_gpu_eval_batch_size": Successor("per_device_eval_batch_size"),
    "include_inputs_for_metrics": Successor("include_for_metrics", 'write include_for_metrics=["inputs"]'),
    "adafactor": Successor("optim", 'write optim="adafactor"'),
    "push_to_hub_model_id": Successor("hub_model_id"),
    "push_to_hub_token": Successor("hub_token"),
    "fp16": Successor("mixed_precision", 'write mixed_precision="fp16"'),
    "nb_epoch": Successor("epochs"),
    "lr": Successor("learning_rate"),
    "gradient_checkpointing": Successor("activation_checkpointing"),
    "gradient_checkpointing_kwargs": Successor("activation_checkpointing_kwargs"),
    "group_by_length": Successor("train_sampling_strategy", 'write train_sampling_strategy="group_by_length"'),
}
_WRAPPED = {"include_inputs_for_metrics": lambda v: ["inputs"] if v else [], "fp16": lambda v: "fp16" if v else "no",
            "adafactor": lambda v: "adafactor" if v else "adamw_torch",
            "group_by_length": lambda v: "group_by_length" if v else "random"}  # fmt: skip
# difflib's ratio at which two names are taken to be the same word with a slip (evaluate_strategy, learning_rates).
CLOSE = 0.85


@rule("TW001", Severity.ERROR)
def renamed_argument(setup: SetupFacts) -> Iterator[Finding]:
    """An unexpected keyword argument that the installed version has under another name, or no longer."""
    call = setup.refused
    if call is not None and call.argument:
        yield _finding(call)


def _finding(call: RefusedCall) -> Finding:
    new = successor(call)
    if new is None:
        does, repair = f"leave {call.argument} out of {call.function}(…)", _leave_out(call.argument)
        known = f"{call.library} has no argument of that name or a similar one"
    else:
        note = f" ({new.note})" if new.note else ""
        does = f"write {new.name}= instead of {call.argument}= in {call.function}(…){note}"
        repair = _rename(call.argument, new.name)
        known = f"{call.library} calls it {new.name}"
    return Finding(
        message=f"{call.function} was given {call.argument}=, which it does not take; {known}",
        measured={"argument": call.argument, **({"new_name": new.name} if new else {}), "library": call.library},
        where=call.places.get(call.argument, call.failure.where),
        repair=repair if call.repairable else None,
        fix=Fix(does=does, safety=Safety.SAFE if new else Safety.UNSAFE),
    )


def successor(call: RefusedCall) -> Successor | None:
    """The name that the argument has today, if the installed signature has it: known, or nearly the same."""
    known = SUCCESSORS.get(call.argument)
    if known is not None and known.name in call.accepts:
        return known
    near = difflib.get_close_matches(call.argument, call.accepts, n=1, cutoff=CLOSE)
    return Successor(near[0]) if near else None


def _rename(old: str, new: str) -> Repair:
    def change(call: Call) -> Call:
        value = _WRAPPED.get(old, lambda v: v)(call[old])
        return call.without(old).replace(**{new: value})

    return Repair(f"pass {old} under its new name {new}", Seam.CONSTRUCT, change)


def _leave_out(name: str) -> Repair:
    return Repair(f"leave {name} out", Seam.CONSTRUCT, lambda call: call.without(name))
