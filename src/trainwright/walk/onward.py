"""How far a check follows a script behind its first training, and what it says of that."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence

from trainwright.core.finding import Place
from trainwright.errors import WalkFinished
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.timing import now

# At most this many trainings of one script are walked, and at most this many of the same line (folds, sweeps).
MOST_WALKED = 4
MOST_AT_A_LINE = 3
# The share of the budget left that a walk may take if another training follows.
WALK_SHARE = 0.6
# A training runs for real for this share of the whole budget before it is ended.
RUN_SHARE = 0.05
# The share of the budget left within which the script must reach its next training.
WAY_SHARE = 0.6
# A walk needs about this many seconds to say anything.
LEAST_SECONDS = 4.0


class Onward:
    """The trainings that a script has reached, and the time for those behind them.

    Args:
        budget: seconds for all walks, and for the way between them.
        only: the number of the one training that is walked; None: all.
    """

    def __init__(self, budget: float, only: int | None = None) -> None:
        self.number = 0
        """The trainings reached so far."""
        self.under_way = False
        """Whether the script runs behind a training that was ended early."""
        self.behind: list[Place] = []
        """The lines of the trainings that follow, as far as the code shows them."""
        self.where: Place | None = None
        """The line of the training that was reached last."""
        self.walks_this = True
        """Whether the training that was reached last is walked."""
        self.ended_early: list[int] = []
        """The numbers of the trainings that were ended before their own end."""
        self._budget = budget
        self._only = only
        self._began: float | None = None
        self._walked: Counter[str] = Counter()
        self._timer = contextlib.ExitStack()

    @property
    def seconds_left(self) -> float:
        """What is left of the budget."""
        return self._budget - (now() - self._began if self._began is not None else 0.0)

    def reach(self, where: Place, behind: Sequence[Place]) -> None:
        """Record that the script has reached a training."""
        self._timer.close()
        self.under_way = False
        self.number += 1
        self.where, self.behind = where, list(behind)
        if self._began is None:
            self._began = now()
        often = self._walked[str(where)] >= MOST_AT_A_LINE
        late = self.number > 1 and self.seconds_left < LEAST_SECONDS
        self.walks_this = self.number == self._only if self._only is not None else not (often or late)

    @property
    def walk_seconds(self) -> float:
        """The time for the walk of the training that was reached."""
        if self.number == 1 and not self.behind:
            return self._budget
        share = WALK_SHARE if self.behind and self._only is None else 1.0
        return round(max(LEAST_SECONDS, self.seconds_left * share), 1)

    def walked(self) -> None:
        """Record that the training that was reached has been walked."""
        self._walked[str(self.where)] += 1

    @property
    def further(self) -> list[Place]:
        """The trainings behind that would be walked if the script went on."""
        if self._only is not None:
            return self.behind if self.number < self._only else []
        if self._walked.total() >= MOST_WALKED or self.seconds_left < LEAST_SECONDS:
            return []
        return [place for place in self.behind if self._walked[str(place)] < MOST_AT_A_LINE]

    @property
    def why_no_further(self) -> str:
        """Why the script does not go on to the trainings behind."""
        if self._only is not None:
            return f"--training {self._only} walks only that one"
        if self.seconds_left < LEAST_SECONDS:
            return f"the budget of {self._budget:g} s ran out"
        if self._walked.total() >= MOST_WALKED:
            return f"at most {MOST_WALKED} trainings of a script are walked"
        return f"at most {MOST_AT_A_LINE} trainings of the same line are walked"

    @property
    def before(self) -> list[str]:
        """What was done with the trainings before the one that was reached, in a sentence."""
        early = [n for n in self.ended_early if n < self.number]
        if not early:
            return []
        names = "training " + str(early[0]) if len(early) == 1 else "trainings " + ", ".join(map(str, early))
        return [f"Before it, {names} ran for {self.run_seconds:g} s and ended early."]

    def remark(self, error: BaseException | None) -> str:
        """Why the training that the script was to reach was not walked; empty if it ended without one."""
        lines = ", ".join(str(place) for place in self.further or self.behind)
        if error is None or not lines or isinstance(error, WalkFinished):
            return ""
        if isinstance(error, OutOfTime):
            return f"The training that follows at {lines} was not walked: the script did not reach it in time."
        if isinstance(error, SystemExit):
            return f"The training that follows at {lines} was not walked: the script called sys.exit({error.code!r})."
        early = ", which was ended early" if self.number in self.ended_early else ""
        return (
            f"The training that follows at {lines} was not walked: behind training {self.number}{early}, the script "
            f"raised {failure_of(error)}."
        )

    @property
    def run_seconds(self) -> float:
        """How long a training runs for real before it is ended."""
        return RUN_SHARE * self._budget

    def go_on(self) -> None:
        """Give the script its time to reach the next training.

        When the time is over, OutOfTime is raised in the script.
        """
        self._timer.close()
        self.under_way = True
        self._timer.enter_context(stopped_after(max(self.run_seconds, WAY_SHARE * self.seconds_left)))

    def stop(self) -> None:
        """End the script's time: it was left."""
        self._timer.close()
