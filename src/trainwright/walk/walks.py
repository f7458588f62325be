"""The walks of one script: each training that it reaches is walked, and its report kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any, TypeVar

from trainwright.adapters.base import Adapter
from trainwright.core import Place, Report
from trainwright.errors import DeviceLost, UsageError, WalkFinished
from trainwright.fixes.edits import with_diffs
from trainwright.options import Options
from trainwright.seams.devices.cpu_for_gpu import Devices
from trainwright.seams.failures.blame import failure_of, is_own
from trainwright.seams.isolation.harmless_run import onward_aside
from trainwright.seams.isolation.silence import away
from trainwright.seams.isolation.tally import Tally
from trainwright.seams.listening.hearing import Hearing, paused
from trainwright.seams.listening.seen import Seen
from trainwright.seams.processes import group_kept
from trainwright.stages.setup import RankFacts
from trainwright.timing import now
from trainwright.walk import pending
from trainwright.walk.before_training import judge_end
from trainwright.walk.closing import stops, versions
from trainwright.walk.drive import pull, put_back
from trainwright.walk.library_warnings import judged, with_warnings
from trainwright.walk.onward import Onward
from trainwright.walk.past_lines import PastLines
from trainwright.walk.pending import PendingTraining
from trainwright.walk.processes import Ranks, remarks, report_of_children
from trainwright.walk.undisturbed import undisturbed
from trainwright.walk.walk import Walk

Say = Callable[[str], None]
Done = Callable[[Report, int], None]
"""Takes a report, and how many further ones follow at once."""
Leave = Callable[[], None]
"""Called before the process is ended."""
Written = Callable[[], Collection[str]]
A = TypeVar("A", bound=Adapter)


class Walks:
    """The trainings of a script that were walked, and what is known about the script so far.

    Args:
        every: after a walk that found no error, end its training early and go on to the script's next one.
    """

    def __init__(
        self,
        script: str,
        options: Options,
        *,
        say: Say = lambda text: None,
        done: Done = lambda report, further: None,
        leave: Leave = lambda: None,
        written: Written = tuple,
        strict: bool = False,
        every: bool = False,
    ) -> None:
        self.reports: list[Report] = []
        self._script = script
        self._options = options
        self._say = say
        self._done = done
        self._leave_with = leave
        self._written = written
        self._strict = strict
        self._tally = Tally()
        self._heard = Hearing()
        self._leaving: contextlib.ExitStack | None = None
        """Closed once the script was left."""
        self._walk = self._new_walk()
        self._devices = Devices(forced=options.device == "cpu")
        self._seen: Seen | None = None
        self._own_error: Exception | None = None
        self._walking = False
        self._passes = 0
        """Backward passes that no trainer made."""
        self._unwalked_until: float | None = None
        """When a training that cannot be walked is left."""
        self._ranks = Ranks()
        self._followed = False
        self._swallowed = 0
        self._every = every
        self._onward = Onward(options.budget, options.training)
        self._past = PastLines()
        self._starts_anew = False  # whether the walk has ended so that a copy starts anew
        self._started = now()
        self._going: bool | None = None
        """Whether the script goes on behind the training that was reached; None: not decided."""
        self._has_gone_on = False
        """Whether the script has gone on behind a training: what it prints, and what we print, is kept away."""
        self._running = False
        """Whether a training runs for real until it is ended early."""
        self._waiting = 0
        """How many of the reports await the end of the script, because it goes on behind their trainings."""
        self._began: float | None = None
        """When the script began, until its first walk; real training before a second walk is not part of the start."""

    def _walk_one(self, training: PendingTraining[A]) -> A:
        """Walk a training."""
        return self._walk_adapter(training.make, lambda: self._not_walked(training.not_walked))

    def _walk_adapter(self, make: Callable[[], A], ending: Callable[[], str]) -> A:
        walk = self._walk
        walk.clock.started = now()
        if self._began is not None:
            walk.start_seconds, self._began = walk.clock.started - self._began, None
        self._walking = True
        try:
            with away(self._tally), paused():
                adapter = make()
                try:
                    with undisturbed(), group_kept():
                        pull(walk, adapter)
                except Exception as error:  # ours: the user's were caught where their code was called
                    walk.internal_error("the walk", error)
                finally:
                    lost = put_back(adapter)
            said = remarks(self._seen.ranks, walk.words) if self._seen else []
            walk.message = " ".join(t for t in (walk.message, *said, ending()) if t)
            report = walk.report(adapter.framework, versions())
            if lost is None and self._walks_past(report):
                raise WalkFinished
            if lost is not None and self._options.device != "cpu" and report.first_cause is None:
                self._own_error = DeviceLost(f"the GPU was lost, and with it the cause: {lost}")
            else:
                self._close(report)
            if lost is not None:
                raise WalkFinished from lost
            self._keep_away()
            return adapter
        except Exception as error:
            if is_own(error, measuring=True):  # nothing can be said or trained after it
                self._own_error = error
            else:  # the user's, raised while its adapter was made
                self._ended_by(error)
            raise WalkFinished from error  # out, past the user's handlers
        finally:
            self._walking = False

    def _walks_past(self, report: Report) -> bool:
        """Whether a copy of the script goes past the exception that ended the walk; the script is then to start anew."""
        if report.failure is None or self._onward.number != 1 or self.reports or not self._may_go_past:
            return False
        self._starts_anew = self._past.go_past(report.failure, report.findings)
        return self._starts_anew

    @property
    def _may_go_past(self) -> bool:
        """Whether a copy of the script may stand in for it: not where its start is long."""
        is_slow = now() - self._started > self._options.budget
        return not (is_slow or not self._options.repair or self._followed or self._ranks.follows)

    def _begin_anew(self) -> None:
        """Forget the script's run so far."""
        self._starts_anew = False
        self._devices.forget_script()
        self._walk, self._passes = self._new_walk(), 0
        self._onward = Onward(self._options.budget, self._options.training)
        self._started = now()
        self._began = self._began or self._started

    def _keep_away(self) -> None:
        """From now on, keep away what the script does: it is no training's result."""
        if self._leaving is not None:
            self._leaving.enter_context(onward_aside(Tally()) if self._every else away(Tally()))

    # The script's further trainings

    def _reach(self, where: Place, behind: Sequence[Place]) -> None:
        """Record that a training was reached, and set the time for its walk."""
        self._onward.reach(where, behind if self._every else ())
        self._going = None
        if self._every:
            self._walk.clock.budget = self._onward.walk_seconds

    def _not_walked(self, told: str) -> str:
        """The remark on the trainings behind, which are not walked.

        Args:
            told: what is said if the code around the training does not show any.
        """
        self._onward.walked()
        behind = self._onward.behind
        if not behind or self._goes_on():
            return "" if behind else told
        lines = ", ".join(str(place) for place in behind)
        stopping = stops(self._walk.report()) or self._walk.interrupted
        why = "the errors above come first" if stopping else self._onward.why_no_further
        return f"The training that follows at {lines} was not walked: {why}."

    def _goes_on(self) -> bool:
        """Whether the script is to go on to its next training, after the walk of this one; decided once."""
        if self._going is None:
            self._going = bool(self._every and self._onward.further) and self._ranks.position is None
            if self._going and self._onward.walks_this:
                self._going = not (stops(self._walk.report()) or self._walk.interrupted)
        return self._going

    def _go_on(self) -> float:
        """Let the script go on; returns the seconds that its training may still run for real.

        Raises:
            WalkFinished: if it is not to go on.
        """
        if not self._goes_on():
            raise WalkFinished
        self._keep_away()
        self._walk = self._new_walk()
        self._has_gone_on = True
        self._onward.go_on()
        return self._onward.run_seconds

    def _run_shortly(self, run: Callable[[float], tuple[Any, bool]]) -> Any:
        """Let a training run for real for a short time, and go on behind it; returns what its call returns."""
        seconds = self._go_on()
        self._running = True
        try:
            result, ended = run(seconds)
        finally:
            self._running = False
        if ended:
            self._onward.ended_early.append(self._onward.number)
        return result

    @property
    def _is_running(self) -> bool:
        """Whether a training runs for real until it is ended early."""
        return self._running

    def _end_following(self, error: BaseException | None = None) -> None:
        """Stop following the script, and say why a training that it was to reach was not walked."""
        self._onward.stop()
        if self._onward.under_way and self.reports and (said := self._onward.remark(error)):
            self.reports[-1] = replace(self.reports[-1], message=f"{self.reports[-1].message} {said}".strip())

    def _tell(self) -> None:
        """Hand over the reports that have waited for the script's end."""
        waiting, self._waiting = self.reports[len(self.reports) - self._waiting :], 0
        for index, report in enumerate(waiting, start=1):
            self._done(report, len(waiting) - index)

    def _ended_by(self, error: Exception) -> None:
        """Handle a user's exception that came before there was anything to walk."""
        failure = failure_of(error)
        if isinstance(error, ImportError) and failure.function.startswith("runpy."):
            raise UsageError(f"-m needs the name of a module that can be run: {error}") from error
        judge_end(self._walk, error, failure, self._seen)
        self._walk.message = " ".join(["The script ended before it reached training.", *self._devices.remarks])
        self._close(self._walk.report(None, versions()))

    def _ended(self, message: str) -> None:
        if not self.reports:
            self._walk.message = message
            self._close(self._walk.report(None, versions()))

    def _close(self, report: Report) -> None:
        with self._past.aside():
            self._close_apart(report)

    def _close_apart(self, report: Report) -> None:
        self._tally.files.update(self._written())
        report = replace(with_diffs(report), redirected=self._devices.seen, kept_away=self._tally.said())
        report = with_warnings(report, judged(self._heard.kept))
        if not self.reports:
            report = with_diffs(self._past.complete(report))
        if self._ranks.follows:  # the first of the processes speaks
            self._followed = True
            self._ranks.put_failure(str(report.failure or report.message))
            return
        self.reports.append(report := self._numbered(report))
        if self._has_gone_on or (self._onward.number and self._goes_on()):
            self._waiting += 1
        else:
            self._done(report, 0)

    def _numbered(self, report: Report) -> Report:
        """The report of one of several trainings, without what was said of those before it."""
        if self._onward.number < 2 and not self._onward.behind:
            return report
        report = replace(report, training=self._onward.number, begins=self._onward.where)
        if not self._every or not self.reports:
            return report
        known = {(f.name, f.where) for one in self.reports for f in one.findings}
        repeated = [f.name for f in report.findings if (f.name, f.where) in known]
        said = [f"As in an earlier training: {', '.join(dict.fromkeys(repeated))}."] if repeated else []
        return replace(
            report,
            findings=tuple(f for f in report.findings if (f.name, f.where) not in known),
            warnings=tuple(w for w in report.warnings if all(w not in one.warnings for one in self.reports)),
            message=" ".join([*said, *self._onward.before, report.message]).strip(),
        )

    def _new_walk(self) -> Walk:
        return Walk(
            self._script,
            budget=self._options.budget,
            updates=self._options.updates,
            ignored=self._options.ignores,
            repair=self._options.repair,
            say=self._say,
            strict=self._strict,
            seed=self._options.seed,
            shows=self._options.samples,
        )

    def _measure_rank(self, frame: FrameType, trainer: Any) -> RankFacts:
        from trainwright.adapters.process_fingerprint import loop_rank, trainer_rank

        assert self._ranks.position is not None
        if trainer is not None:
            return trainer_rank(trainer, self._ranks.position)
        return loop_rank(frame, self._seen or Seen(), self._ranks.position)

    def _report_of_children(self) -> bool:
        if (report := report_of_children()) is not None:
            self.reports.append(report)
            self._done(report, 0)
        return report is not None

    def _walk_model_fit(self, model: Any, frame: FrameType, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Walk a model's `fit`; return the arguments that must be replaced for the real training."""
        return self._walk_one(pending.of_model(model, frame, given, self._seen or Seen())).for_training()
