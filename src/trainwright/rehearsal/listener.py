"""What a script's trainings tell while it runs as it is: every call passes, and the close look knows whose training it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from trainwright.core import Call, Repair, Seam
from trainwright.errors import ScriptLeft, UnsupportedVersion
from trainwright.frameworks.packages import NEEDED, TrainingKind
from trainwright.look.ending import measure_end
from trainwright.look.kinds import kind_of
from trainwright.rehearsal.ranks import RankNotes, compared_by_children, work_as_rank
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.seams.requirements import packages_of, require


class Listening:
    """Notes which trainer trains, and lets each call pass."""

    looking: Any = None
    """The close look (`look/look.py`), once torch is watched."""
    repairs: Sequence[Repair] = ()
    """Those in force in this run, and the number of the training that they are for."""
    repaired_training = 1
    misuse = ""
    """Which framework is too old for a check."""
    compared = RankNotes()
    """What processes that the script has started begin to train with."""
    _is_required = False

    @contextlib.contextmanager
    def training(self, kind: TrainingKind, trainer: Any, frame: FrameType) -> Iterator[None]:
        """A trainer trains, or a model of Keras's."""
        self.require(*NEEDED[kind], *packages_of(trainer))
        if self.looking is None or kind == TrainingKind.FIT:
            yield
            return
        self.looking.begin_training(kind_of(kind, trainer, frame))
        try:
            yield
        except BaseException as error:
            self.looking.end_training(error)
            raise
        self.looking.end_training()

    def on_refusal(self, name: str, function: Any, keywords: Any, error: Exception, frame: FrameType) -> Any:
        """The error reaches the script, unless a repair changes the keywords."""
        changed = Call(seam=Seam.CONSTRUCT, given=dict(keywords))
        for repair in self.repairs:
            if repair.seam == Seam.CONSTRUCT:
                with contextlib.suppress(KeyError):  # it is of a call with other arguments
                    changed = apply_repair(repair, changed)
        if changed.given != dict(keywords):
            return changed.given
        if self.looking is not None:
            self.looking.note_refused(name, function, keywords, error, frame)
        return None

    def on_loop(self, frame: FrameType, *, backward: bool = False) -> None:
        """The other doors tell."""
        if not self._is_required:
            self._is_required = True
            self.require(*NEEDED[TrainingKind.LOOP])

    def on_failed_call(self, trainer: Any, frame: FrameType) -> None:
        """The error reaches the script; it may be what ends the run."""
        if self.looking is not None and not self.looking.done:
            self.looking.begin_training(kind_of(TrainingKind.TRAINER, trainer, frame))

    def require(self, *packages: str) -> None:
        """Leave the script if one of these packages is too old."""
        try:
            require(*packages)
        except UnsupportedVersion as error:
            self.unsupported(str(error))

    def unsupported(self, why: str) -> None:
        """Leave the script, past its own handlers.

        Raises:
            ScriptLeft: always.
        """
        self.misuse = why
        raise ScriptLeft

    def in_child(self, work: Callable[[], Any]) -> None:
        """The process tells with what it begins to train; the script's own end is the parent's."""
        work_as_rank(work, lambda error: measure_end(error, self.looking))

    def children_ended(self) -> None:
        """The processes have ended; if they have told, the script is left.

        Raises:
            ScriptLeft: they have.
        """
        if (told := compared_by_children()) is not None:
            self.compared = told
            raise ScriptLeft


LISTENING = Listening()
