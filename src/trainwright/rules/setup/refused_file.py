"""TW007 refused-file: the script will save its trained model under a file name that the framework rejects.

Why it matters: saving comes last, so the training runs to its end, and what it learnt is lost with the error.
Evidence: calls of save and save_weights below the training whose path is known before it; asked to save a model of one
weight to such a path, the framework raised.
Error: `Invalid filepath extension for saving`
Error: `The filename must end in `
Fix (safe where the path is written there alone): give it the ending of the format, `.keras` or `.weights.h5`, wherever it
is used; a folder for serving is what export writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety, SetKeyword
from trainwright.core.rule import rule
from trainwright.stages.setup import SetupFacts


@rule("TW007", Severity.ERROR, raises=False)
def refused_file(setup: SetupFacts) -> Iterator[Finding]:
    """A path to save to, once training is done, that is not taken."""
    for one in setup.refused_files:
        at = one.where
        yield Finding(
            message=f'once the training is done, {one.method}("{one.path}") raises {one.failure.type}; "{one.taken_as}" is taken',
            measured={"path": one.path, "method": one.method},
            where=at,
            proof=Proof(f"asked to save another model so: {one.failure.message.split('. ')[0]}"),
            fix=Fix(
                does=f'write {one.method}("{one.taken_as}")'
                + ("" if one.alone else ", and so wherever the path is used"),
                safety=Safety.SAFE if one.alone else Safety.MANUAL,
                edits=(SetKeyword(at.file, at.line, "filepath", f'"{one.taken_as}"', one.method, 0),)
                * one.alone,
            ),
        )
