"""Tracks repairs: which ones changed a call of the pipeline, and which ones failed."""

from __future__ import annotations

from trainwright.core import Call, Repair, Seam
from trainwright.seams.failures.blame import describe_error

# At these seams, a change may be one of the call's objects; elsewhere it is a new call.
_IN_PLACE = (Seam.TRAINER, Seam.OPTIMIZER, Seam.FORWARD, Seam.BATCH)
# Changes at these seams happen between the pipeline's calls, so their exceptions reach the caller.
_BETWEEN_CALLS = (Seam.CONSTRUCT, Seam.TRAINER)

_made: set[str] = set()
_failed: dict[str, Exception] = {}


def apply_repair(repair: Repair, call: Call) -> Call:
    """The call with a repair's change; the unchanged call if the change raises inside the user's pipeline.

    Raises:
        Exception: raised by a change of a construction or of training's parts, or by the user's own code in a change.
    """
    try:
        changed = repair.change(call)
    except Exception as error:
        if (
            call.seam in _BETWEEN_CALLS or describe_error(error).where is not None
        ):  # or the user's own code raised in it
            raise
        _failed.setdefault(repair.does, error)
        return call
    if changed is not call or call.seam in _IN_PLACE:
        _made.add(repair.does)
    return changed


def was_made(repair: Repair) -> bool:
    """Whether a repair changed a call of this check, and never failed to change one."""
    return repair.does in _made and repair.does not in _failed
