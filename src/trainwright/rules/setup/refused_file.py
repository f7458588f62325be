"""TW007 refused-file: the script will save its trained model under a file name that the framework rejects.

Why it matters: Saving comes last, so the training runs to its end, and its result is lost with the error.
Evidence: Calls of save and save_weights after training whose path is already known. When asked to save a one-weight
model to such a path, the framework raised an error.
Error: `Invalid filepath extension for saving`
Error: `The filename must end in `
Fix (safe where the path is written there alone): Use the extension of the format, `.keras` or `.weights.h5`, everywhere
the path is used. For a serving folder, use export.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Safety, SetKeyword, Severity, rule
from trainwright.stages import SetupFacts


@rule("TW007", Severity.ERROR, raises=False, foretells=Fate.STOPS)
def refused_file(setup: SetupFacts) -> Iterator[Finding]:
    """A path for saving after training that the framework rejects."""
    for one in setup.refused_files:
        at = one.where
        yield Finding(
            message=f'after the training, {one.method}("{one.path}") will raise {one.failure.type}; "{one.taken_as}" is accepted',
            measured={"path": one.path, "method": one.method},
            where=at,
            proof=Proof(f"saving another model to such a path raised: {one.failure.message.split('. ')[0]}"),
            fix=Fix(
                does=f'write {one.method}("{one.taken_as}")'
                + ("" if one.alone else ", and change the path everywhere it is used"),
                safety=Safety.SAFE if one.alone else Safety.MANUAL,
                edits=(SetKeyword(at.file, at.line, "filepath", f'"{one.taken_as}"', one.method, 0),) * one.alone,
            ),
        )
