"""One observed run of a script, whose trainings are walked as they are reached."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any, TypeVar

from trainwright.adapters.base import Adapter
from trainwright.core import cells
from trainwright.core.repair import Call, Seam
from trainwright.core.report import Report
from trainwright.errors import ScriptFailed, TrainwrightError, UnsupportedVersion, UsageError, WalkFinished
from trainwright.fixes.edits import with_diffs
from trainwright.options import Options
from trainwright.seams.devices.cpu_for_gpu import Devices
from trainwright.seams.failures.blame import failure_of, is_own
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.intercept import listening
from trainwright.seams.isolation.offline import offline
from trainwright.seams.isolation.silence import away
from trainwright.seams.isolation.tally import Tally
from trainwright.seams.listening.seen import Seen
from trainwright.seams.loops.found_loops import Loop
from trainwright.seams.loops.training_loop import loop_of_error
from trainwright.seams.processes import group_kept, unconnected
from trainwright.stages.setup import RankFacts
from trainwright.walk import pending
from trainwright.walk.before_training import judge, raised_facts, refused_facts
from trainwright.walk.closing import stops, versions
from trainwright.walk.drive import pull
from trainwright.walk.loop_finder import LoopFinder
from trainwright.walk.pending import PendingTraining
from trainwright.walk.processes import Ranks, remarks, report_of_children
from trainwright.walk.undisturbed import undisturbed
from trainwright.walk.version_check import TRAINER, packages_of, require
from trainwright.walk.walk import Walk

Say = Callable[[str], None]
A = TypeVar("A", bound=Adapter)
# So often a script may go on with its loop although it was told to end.
MOST_SWALLOWED = 8
# A script is run so often at most: for its launcher's variables, for functions that were not watched, for a made-up GPU.
MOST_ATTEMPTS = 4


class Session:
    """One observed run of a script: it is notified of the script's actions and walks its trainings.

    Args:
        train: let the training continue for real after a walk without errors.
    """

    def __init__(
        self,
        script: str,
        options: Options,
        *,
        train: bool = False,
        say: Say = lambda text: None,
        done: Callable[[Report], None] = lambda report: None,
        strict: bool = False,
    ) -> None:
        self.reports: list[Report] = []
        self._script = script
        self._options = options
        self._train = train
        self._say = say
        self._done = done
        self._strict = strict
        self._tally = Tally()
        self._leaving: contextlib.ExitStack | None = None
        """Closed once the script was left."""
        self._walk = self._new_walk()
        self._devices = Devices(redirects=not train, forced=options.device == "cpu")
        self._seen: Seen | None = None
        self._own_error: Exception | None = None
        self._walking = False
        self._finder = LoopFinder()
        self._ranks = Ranks()
        self._followed = False
        self._swallowed = 0
        self._began: float | None = None
        """When the script began, until its first walk: what is trained for real before a second one is no start."""
        self.restart = False
        """The script is to be run again for real, in a separate process."""

    def run(self, start: Callable[[], Any]) -> list[Report]:
        """Run the script; return one report per walked training, or one that says why there was none."""
        self._began = time.monotonic()
        kept = contextlib.nullcontext() if self._train else offline(self._tally)
        with kept, self._devices.told():
            return self._run(start)

    def _run(self, start: Callable[[], Any]) -> list[Report]:
        try:
            self._listen(start)
        except WalkFinished:
            pass
        except KeyboardInterrupt:
            if self._seen and self._seen.trained:  # it was the real training that was interrupted
                raise
            self._ended("Interrupted before training was reached.")
        except SystemExit as error:
            if self._seen and self._seen.trained:  # the script's own exit status, after its training
                raise
            self._ended(f"The script called sys.exit({error.code!r}) before it reached a training call.")
        except UsageError:  # what a notebook has that cannot be run here
            raise
        except Exception as error:  # the user's script raised: that is what we came to see
            self._raised(error)
        if self._own_error is not None:
            raise self._own_error
        if not self.reports and not self._followed and not self._report_of_children():
            self._ended(
                "The script ended without reaching a training call or loop that Trainwright recognizes."
            )
        return self.reports

    def _listen(self, start: Callable[[], Any]) -> None:
        """Run the script, and run it again if it ended before training because of the devices it found."""
        for attempt in range(MOST_ATTEMPTS):
            try:
                with contextlib.ExitStack() as self._leaving, listening(self) as self._seen:
                    start()
                ended: Exception | SystemExit | None = None
            except (Exception, SystemExit) as error:  # let out below, unless the script starts anew
                ended = error
            if self._devices.own_error is not None:
                self._own_error = self._devices.own_error
                return
            last = attempt == MOST_ATTEMPTS - 1 or self.reports or self._followed or self._own_error
            if last or not self._devices.starts_anew(ended):
                if ended is not None:
                    raise ended
                return
            del ended
            self._walk = self._new_walk()

    def check(self, make: Callable[[Seen], Adapter]) -> Report:
        """Walk one training that is no script's: whatever raises while its adapter is made ended it before its start."""
        self._walking = True  # a loop around the call is not the training
        try:
            with listening(self) as self._seen:
                adapter = make(self._seen)
                self._walk_adapter(lambda: adapter, lambda: "")
        except WalkFinished:
            pass
        except TrainwrightError:
            raise
        except Exception as error:  # the user's own hooks and data raised: that is what we came to see
            self._raised(error)
        if self._own_error is not None:
            raise self._own_error
        return self.reports[-1]

    # What the script does (seams.listening.seen.Listener)

    def on_refusal(
        self,
        name: str,
        function: Callable[..., Any],
        keywords: Mapping[str, Any],
        error: Exception,
        frame: FrameType,
    ) -> Mapping[str, Any] | None:
        """Handle a constructor that rejected its arguments: find the cause, and return corrected keywords."""
        for finding in judge(self._walk, refused_facts(name, function, keywords, error, frame)):
            if finding.repair is None or finding.repair.seam != Seam.CONSTRUCT or not self._options.repair:
                continue
            changed = mended(finding.repair, Call(seam=Seam.CONSTRUCT, given=dict(keywords)))
            self._walk.mended(finding)
            return changed.given
        return None

    def on_train(self, trainer: Any, frame: FrameType, original: Callable[[], Any]) -> Any:
        """Handle a training call: walk it; then train for real, or leave the script."""
        assert self._seen is not None
        if self._followed or (self.reports and not self._train):  # the script caught WalkFinished and goes on
            raise WalkFinished
        self._require(*TRAINER)
        self._ranks = Ranks()
        if self._ranks.position is not None:
            self._walk_as_rank(
                lambda: self._measure_trainer(trainer), lambda: self._walk_training(trainer, frame)
            )
        self._walk_training(trainer, frame)
        if self._train and not self._walk.interrupted and not stops(self.reports[-1]):
            self._seen.trained.add(id(trainer))
            self._walk = self._new_walk()
            return original()
        raise WalkFinished

    def on_loop(self, frame: FrameType, *, backward: bool = False) -> None:
        """Handle a backward pass or optimizer step: if it is in the user's own loop, walk that and leave the script."""
        seen = self._seen or Seen()
        if (
            self._walking
            or seen.trained
            or (loop := self._finder.find(frame, seen, backward=backward)) is None
        ):
            return
        self._require("torch", *(["accelerate"] if self._accelerates() else []))
        self._ranks = Ranks()
        if self._ranks.position is not None and not self.reports and not self._followed:
            self._walk_as_rank(lambda: self._measure_loop(loop), lambda: self._walk_loop(loop))
        if self.reports:
            self._swallowed += 1
            if self._swallowed == MOST_SWALLOWED:
                self._leave()
        else:
            self._walk_loop(loop)
        raise WalkFinished

    def _leave(self) -> None:
        """End the process when a bare `except:` around the loop's step has kept the script alive after its check."""
        if self._leaving is not None:
            self._leaving.close()
        sys.stdout.flush()
        print(
            "trainwright: a bare `except:` in the script caught the end of the check, so the process exits here.",
            file=sys.stderr,
        )
        sys.stderr.flush()
        os._exit(1 if stops(self.reports[-1]) or self.reports[-1].faulty else 0)

    def in_child(self, work: Callable[[], Any]) -> None:
        """Do the work of a process that the script started; if that is its training, this process walks, and ends."""
        self._say = self._walk.say = lambda text: None
        self._done = lambda report: self._ranks.put_report(report)
        self._leaving = None
        try:
            work()
        except WalkFinished:
            pass
        except Exception as error:  # the user's work raised: that is what we came to see
            self._ranks = Ranks()
            self._raised(error)
        if self._own_error is not None:
            traceback.print_exception(self._own_error)
        if self._own_error is not None or self.reports or self._followed:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(
                2 if self._own_error is not None else 0
            )  # past the handlers of the script that was copied

    def children_ended(self) -> None:
        """The processes that the script started have ended: if one of them walked, the script is left."""
        if self._report_of_children():
            raise WalkFinished

    def on_fit(
        self, trainer: Any, frame: FrameType, given: Mapping[str, Any], original: Callable[[], Any]
    ) -> Any:
        """The script calls `fit` of a Lightning Trainer: walk what it would train, and leave the script."""
        if self._seen and self._seen.trained:
            return original()
        if not self.reports:
            self._require("torch", *packages_of(trainer))
            self._walk_fit(trainer, frame, given)
        raise WalkFinished

    def on_model_fit(
        self,
        model: Any,
        frame: FrameType,
        given: Mapping[str, Any],
        original: Callable[[Mapping[str, Any]], Any],
    ) -> Any:
        """The script calls `fit` of a model: walk it; then train for real, or leave the script."""
        assert self._seen is not None
        if self.reports and not self._train:  # the script caught WalkFinished and goes on
            raise WalkFinished
        self._require(*packages_of(model))
        changed = self._walk_model_fit(model, frame, given)
        if self._train and not self._walk.interrupted and not stops(self.reports[-1]):
            self._seen.trained.add(id(model))
            self._walk = self._new_walk()
            return original(changed)
        raise WalkFinished

    def on_failed_call(self, trainer: Any, name: str, error: Exception, frame: FrameType) -> None:
        """`trainer.evaluate()` or `predict()` raised before training: walk, the cause will be on the way."""
        self._require(*TRAINER)
        self._walk_training(trainer, frame)
        raise WalkFinished

    def unsupported(self, why: str) -> None:
        """The script begins what would be walked, with a framework that is too old for it: leave it, and say so."""
        self._own_error = UnsupportedVersion(why)
        raise WalkFinished

    # One of several processes

    def _measure_loop(self, loop: Loop) -> RankFacts:
        from trainwright.adapters.loop.lifted_body import LiftedBody
        from trainwright.adapters.process_fingerprint import loop_rank

        assert self._ranks.position is not None
        return loop_rank(LiftedBody(loop), self._seen or Seen(), self._ranks.position)

    def _measure_trainer(self, trainer: Any) -> RankFacts:
        from trainwright.adapters.process_fingerprint import trainer_rank

        assert self._ranks.position is not None
        return trainer_rank(trainer, self._ranks.position)

    def _walk_as_rank(self, measure: Callable[[], RankFacts], walk: Callable[[], None]) -> None:
        """Measure what this process has; if it is the first, walk with what all of them have. The script is left."""
        self._walking = True
        try:
            with unconnected():
                with undisturbed():
                    facts = measure()
                if self._ranks.follows:
                    self._ranks.put(facts)
                    self._followed = True
                    raise WalkFinished
                assert self._seen is not None
                self._say("waiting for the other ranks")
                self._seen.ranks = self._ranks.gather(facts)
                if self._train:
                    self._walk.message = (
                        "`run` does not start a training with several processes: launch the script yourself."
                    )
                self._train = False
                walk()
        except Exception as error:  # ours: out, past the user's handlers
            self._own_error = error
        finally:
            self._walking = False
        raise WalkFinished

    def _report_of_children(self) -> bool:
        report = report_of_children()
        if report is not None:
            self.reports.append(report)
            self._done(report)
        return report is not None

    # How it is done

    def _require(self, *packages: str) -> None:
        """Leave the script if one of these packages is too old."""
        try:
            require(*packages)
        except UnsupportedVersion as error:
            self.unsupported(str(error))

    def _accelerates(self) -> bool:
        built = self._seen.constructions.values() if self._seen else ()
        return any(c.name == "Accelerator" for c in built)

    def _walk_training(self, trainer: Any, frame: FrameType) -> None:
        self._walk_one(pending.of_trainer(trainer, frame, self._seen or Seen()))

    def _walk_model_fit(self, model: Any, frame: FrameType, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Walk a model's `fit`; return the arguments that must be replaced for the real training."""
        return self._walk_one(pending.of_model(model, frame, given, self._seen or Seen())).for_training()

    def _walk_fit(self, trainer: Any, frame: FrameType, given: Mapping[str, Any]) -> None:
        self._walk_one(pending.of_fit(trainer, frame, given, self._seen or Seen()), anew=True)

    def _walk_loop(self, loop: Loop) -> None:
        try:
            training = pending.of_loop(loop, self._seen or Seen())
        except SyntaxError as error:  # `await` in the body
            self._ended(
                f"The training loop at {cells.told(loop.file, [loop.line])} cannot be compiled separately, so it was not walked: {error.msg}."
            )
            return
        self._walk_one(training, anew=True)

    def _walk_one(self, training: PendingTraining[A], *, anew: bool = False) -> A:
        """Walk a training.

        Args:
            anew: real training begins in another process, with everything that the script has; else from where it is.
        """

        def ending() -> str:
            told = "" if self._train and not anew else training.not_walked
            return " ".join(t for t in (told, self._decide_restart() if anew else "") if t)

        return self._walk_adapter(training.make, ending)

    def _decide_restart(self) -> str:
        """Decide whether the script is run again, since the walk changed its variables; returns the message."""
        report = self._walk.report()
        self.restart = self._train and not self._walk.interrupted and not stops(report)
        if not self._train:
            return ""
        if self.restart:
            return "The script now starts again for real, in a separate process."
        return "The script was not run for real: fix the findings above first."

    def _walk_adapter(self, make: Callable[[], A], ending: Callable[[], str]) -> A:
        walk = self._walk
        walk.clock.started = time.monotonic()
        if self._began is not None:
            walk.start_seconds, self._began = walk.clock.started - self._began, None
        self._walking = True
        try:
            with away(self._tally):
                adapter = make()
                try:
                    with undisturbed(), group_kept():
                        pull(walk, adapter)
                except Exception as error:  # ours: the user's were caught where their code was called
                    walk.internal_error("the walk", error)
                finally:
                    adapter.put_back()
            said = remarks(self._seen.ranks) if self._seen else []
            walk.message = " ".join(t for t in (walk.message, *said, ending()) if t)
            self._close(walk.report(adapter.framework, versions()))
            if (
                self._leaving is not None and not self._train
            ):  # what it does in `finally` is no training's result
                self._leaving.enter_context(away(Tally()))
            return adapter
        except Exception as error:
            if is_own(error, measuring=True):  # nothing can be said or trained after it
                self._own_error = error
            else:  # the user's, raised while its adapter was made
                self._ended_by(error)
            raise WalkFinished from error  # out, past the user's handlers
        finally:
            self._walking = False

    def _raised(self, error: Exception) -> None:
        """Handle an exception that ended the script: the user's, or our own, which is raised later."""
        if is_own(error):
            self._own_error = error
            return
        if self._followed or self._report_of_children():
            return
        if self.reports:
            if self._seen and self._seen.trained:
                raise ScriptFailed("the script raised while it was training") from error
            return
        if (loop := loop_of_error(error)) is not None:
            self._walk_loop(loop)
            return
        self._ended_by(error)

    def _ended_by(self, error: Exception) -> None:
        """Handle a user's exception that came before there was anything to walk."""
        failure = failure_of(error)
        if isinstance(error, ImportError) and failure.function.startswith("runpy."):
            raise UsageError(f"-m needs the name of a module that can be run: {error}") from error
        judge(self._walk, raised_facts(error, failure, self._seen))
        stopped = "The script ended before it reached training."
        self._walk.message = " ".join([stopped, *self._devices.remarks(error)])
        self._close(self._walk.report(None, versions()))

    def _ended(self, message: str) -> None:
        if not self.reports:
            self._walk.message = message
            self._close(self._walk.report(None, versions()))

    def _close(self, report: Report) -> None:
        report = replace(with_diffs(report), redirected=self._devices.seen, kept_away=self._tally.said())
        if self._ranks.follows:  # the first of the processes speaks
            self._followed = True
            self._ranks.put_failure(str(report.failure or report.message))
            return
        self.reports.append(report)
        self._done(report)

    def _new_walk(self) -> Walk:
        return Walk(
            self._script,
            budget=self._options.budget,
            ignored=self._options.ignores,
            repair=self._options.repair,
            say=self._say,
            strict=self._strict,
            seed=self._options.seed,
        )
