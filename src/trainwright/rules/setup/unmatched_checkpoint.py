"""TW012 unmatched-checkpoint: a checkpoint was loaded, but hardly any of its tensors has a name that the model has.

Why it matters: With strict=False nothing fails, and nothing is loaded: the model keeps its random weights, while the script
treats it as trained.
Evidence: The names that load_state_dict reported as missing and unexpected.
Fix (safe where another prefix makes the names match): Rename the keys, or load the part of the model that they belong to;
leave strict=False out, so that a mismatch raises.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import SetupFacts, UnmatchedCheckpoint


@rule("TW012", Severity.ERROR, raises=False)
def unmatched_checkpoint(setup: SetupFacts) -> Iterator[Finding]:
    """State dicts that were loaded with strict=False and matched nothing."""
    for one in setup.unmatched_checkpoints:
        yield Finding(
            message=f"{one.matched} of the checkpoint's {one.tensors} tensors were loaded into {one.model}: it has names such "
            f'as "{one.example}" where the model has "{one.wanted}", and strict=False lets that pass',
            measured={"loaded": one.matched, "tensors": one.tensors, "expected": one.expected},
            where=one.where,
            proof=Proof(
                f"load_state_dict reported {one.tensors - one.matched} unexpected and {one.expected - one.matched} missing names"
            ),
            fix=Fix(does=_advice(one), safety=Safety.SAFE if one.would_match else Safety.MANUAL),
        )


def _advice(one: UnmatchedCheckpoint) -> str:
    if not one.would_match:
        return "compare the names of the checkpoint and the model, and leave strict=False out"
    changed = f'replace "{one.prefix}" by "{one.renamed}" at the beginning of the names'
    if not one.prefix:
        changed = f'put "{one.renamed}" before the names, or load into that part of the model'
    elif not one.renamed:
        changed = f'remove "{one.prefix}" from the beginning of the names'
    return f"{changed}: then {one.would_match} of {one.tensors} match; and leave strict=False out"
