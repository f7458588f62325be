"""Repairs, where they are made: which changed a call of the pipeline, and which could not."""

from __future__ import annotations

from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.failures.blame import told

# At these a change may be one of the objects that the call holds; elsewhere it is a new call.
_IN_PLACE = (Seam.TRAINER, Seam.OPTIMIZER, Seam.FORWARD, Seam.BATCH, Seam.EVALUATION)
# A change of these is made between the pipeline's calls: what it raises reaches whoever asked for it.
_BETWEEN_CALLS = (Seam.CONSTRUCT, Seam.TRAINER)

_made: set[str] = set()
_failed: dict[str, Exception] = {}


def mended(repair: Repair, call: Call) -> Call:
    """The call with a repair's change; as it was given where the change raises in the midst of the user's pipeline.

    Raises:
        Exception: what the change of a construction, or of training's parts, raised; what the user's own code in it did.
    """
    try:
        changed = repair.change(call)
    except Exception as error:
        if call.seam in _BETWEEN_CALLS or told(error).where is not None:  # or the user's own code raised in it
            raise
        _failed.setdefault(repair.does, error)
        return call
    if changed is not call or call.seam in _IN_PLACE:
        _made.add(repair.does)
    return changed


def was_made(repair: Repair) -> bool:
    """Whether a call of this walk was made with a repair's change, and none without it because the change raised."""
    return repair.does in _made and repair.does not in _failed


def failed_repairs() -> dict[str, Exception]:
    """What the changes of repairs raised in the midst of the pipeline, by what they do."""
    return dict(_failed)


def begin() -> None:
    """A walk begins: no repair of it has been made."""
    _made.clear()
    _failed.clear()
