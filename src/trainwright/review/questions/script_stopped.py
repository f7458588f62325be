"""TW1001 script-stopped: the script did not get to its end.

Why it matters: What comes behind this line (further epochs, the evaluation, saving) is never reached, and may be reached
only after hours in the real run.
Evidence: The script was run as it is. An exception ended it, or its process died. An exit with another status than 0
behind its trainings is a warning: the trainings are sound, but what starts the script takes it as failed.
Fix (manual): Mend the line that is named; the trace shows the way to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.core.misspelt import mend
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Ended

# Characters of what sys.exit was given.
MOST_SHOWN = 60


@rule("TW1001", Severity.ERROR)
def script_stopped(record: Record) -> Iterator[Finding]:
    """An exception that nothing caught, or a process that ended by a signal or with an error's status."""
    for earlier in record.earlier:  # copies went past them
        yield from _of(earlier, earlier.update)
    yield from _of(record.ended, record.updates)


def _of(ended: Ended, updates: int) -> Iterator[Finding]:
    when = f"after {updates:,} updates" if updates else "before its first update"
    if ended.failure is not None:
        yield Finding(
            message=f"{when} the script stops with {ended.failure}",
            measured={"updates": updates},
            where=ended.failure.where,
            proof=Proof(f"it was run to this line: {ended.failure.type}"),
            fix=mend(ended.failure),
        )
    elif ended.exit is not None:
        said = ended.exit.message
        how = (
            f"status {said}"
            if said.removeprefix("-").isdigit()
            else f"status 1, for sys.exit was given {said[:MOST_SHOWN]!r}"
        )
        yield Finding(
            severity=Severity.WARNING,
            message=f"behind its training the script ends with {how}; what starts it takes that as a failure",
            where=ended.exit.where,
            proof=Proof(f"it was run to this line, {when}"),
            fix=Fix(does="end with status 0 where all is well: sys.exit(main()) passes on what main returns"),
        )
    elif ended.status and not ended.is_cut:
        printed = f"; it printed last: {ended.printed}" if ended.printed else ""
        how = f"by signal {-ended.status}" if ended.status < 0 else f"with status {ended.status}"
        yield Finding(
            message=f"{when} the script's process ends {how}",
            measured={"updates": updates, "status": ended.status},
            proof=Proof(f"it was run; its process ended {how}{printed}"),
            fix=Fix(does="find what ends the process: memory that runs out, a library's crash, an exit in the script"),
        )
