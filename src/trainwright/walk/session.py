"""One observed run of a script, whose trainings are walked as they are reached."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NoReturn

from trainwright.adapters.base import Adapter
from trainwright.core import Call, Report, Seam, exit_status
from trainwright.core.report import UNWALKED
from trainwright.errors import TrainwrightError, UnsupportedVersion, UsageError, WalkFinished
from trainwright.frameworks.packages import BESIDE_LOOP, LIGHTNING, LOOP, TRAINER
from trainwright.seams.failures.blame import failure_of, is_own
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.intercept import listening
from trainwright.seams.isolation.offline import offline
from trainwright.seams.listening.hearing import heard_by, paused
from trainwright.seams.listening.jax_patches import watching_gradients
from trainwright.seams.listening.seen import Seen, active
from trainwright.seams.loops.found_loops import callers
from trainwright.seams.loops.training_loop import loop_of_error
from trainwright.seams.loops.trainings_behind import behind_call
from trainwright.seams.processes import unconnected
from trainwright.seams.source.places import place_of
from trainwright.stages.setup import RankFacts
from trainwright.timing import now
from trainwright.walk.before_training import judge, judge_end, refused_facts
from trainwright.walk.closing import nothing_checked
from trainwright.walk.past_lines import MOST_PASSED
from trainwright.walk.processes import Ranks, remarks
from trainwright.walk.undisturbed import undisturbed
from trainwright.walk.version_check import packages_of, require
from trainwright.walk.walks import Walks

Say = Callable[[str], None]
# How often a script may continue its loop although it was told to end.
MOST_SWALLOWED = 8
# A script is run at most this often: for its launcher's variables, for unwatched functions, for a stand-in GPU.
MOST_ATTEMPTS = 4
# Gradients are looked at a few times without training. A training that cannot be walked is left after these seconds: a part
# of it that comes before one that can be walked should be over by then.
FEW_PASSES, UNWALKED_SECONDS = 8, 30.0


class Session(Walks):
    """One observed run of a script: it is notified of the script's actions and walks its trainings."""

    def run(self, start: Callable[[], Any]) -> list[Report]:
        """Run the script; return one report per walked training, or one that says why there was none."""
        self._began = now()
        with offline(self._tally), self._devices.told(), heard_by(self._heard):
            return self._run(start)

    def _run(self, start: Callable[[], Any]) -> list[Report]:
        try:
            self._listen(start)
        except (WalkFinished, OutOfTime) as ended:
            self._end_following(ended)
        except KeyboardInterrupt:
            self._ended("Interrupted before training was reached.")
        except SystemExit as error:
            self._end_following(error)
            if error.code:
                exits = f"The script called sys.exit({error.code!r}) before it reached a training call"
                self._ended(nothing_checked(exits))
        except UsageError:  # what a notebook has that cannot be run here
            raise
        except Exception as error:  # the user's script raised: that is what we came to see
            self._raised(error)
        finally:
            self._past.close()
            self._end_following()
            self._tell()
        if self._own_error is not None:
            raise self._own_error
        if not self.reports and not self._followed and not self._report_of_children():
            if self._options.training is not None and self._onward.number:
                self._ended(f"There is no training {self._options.training}: {self._onward.number} were reached.")
            untrained = "The script ended without reaching a training call or loop that Trainwright recognizes"
            if self._unwalked_until is not None:
                untrained = "The script trains in code that cannot be walked"
            self._ended(nothing_checked(untrained))
        return self.reports

    def _listen(self, start: Callable[[], Any]) -> None:
        """Run the script, and run it again if it ended before training because of the devices it found."""
        for attempt in range(MOST_ATTEMPTS + MOST_PASSED):
            try:
                with contextlib.ExitStack() as self._leaving, listening(self) as self._seen:
                    self._leaving.callback(setattr, self, "_leaving", None)  # behind the script nothing is kept away
                    self._leaving.enter_context(watching_gradients(self._train_unwalked))
                    start()
                ended: Exception | SystemExit | None = None
            except WalkFinished:
                if not self._starts_anew:
                    raise
                self._begin_anew()
                continue
            except (Exception, SystemExit) as error:  # raised below, unless the script is restarted
                ended = error
            if self._devices.own_error is not None:
                self._own_error = self._devices.own_error
                return
            last = self.reports or self._followed or self._own_error
            if last or not ((attempt < MOST_ATTEMPTS and self._devices.starts_anew(ended)) or self._goes_past(ended)):
                if ended is not None:
                    raise ended
                return
            del ended
            self._begin_anew()

    def _goes_past(self, error: Exception | SystemExit | None) -> bool:
        """Whether a copy of the script goes past the exception that ended it before training."""
        if not isinstance(error, Exception) or isinstance(error, UsageError) or is_own(error) or not self._may_go_past:
            return False
        if self._onward.number or loop_of_error(error) is not None:
            return False
        judge_end(self._walk, error, failure := failure_of(error), self._seen)
        return self._past.go_past(failure, self._walk.findings)

    def check(self, make: Callable[[Seen], Adapter]) -> Report:
        """Walk one training without a script; an exception while its adapter is made is a failure before training."""
        self._walking = True  # a loop around the call is not the training
        try:
            with listening(self) as self._seen, heard_by(self._heard):
                with paused():
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
        self, name: str, function: Callable[..., Any], keywords: Mapping[str, Any], error: Exception, frame: FrameType
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
        """Handle a Trainer's training call: leave the script."""
        if self._is_running:
            return original()
        if self._followed or self._is_left:  # the script caught WalkFinished and goes on
            raise WalkFinished
        self._require(*TRAINER)
        return self._leave_to_run(frame, trainer)

    def on_loop(self, frame: FrameType, *, backward: bool = False) -> None:
        """Handle a backward pass or an update that no trainer makes: the run as it is shows such a training, so the script is
        left here."""
        if self._walking or self._is_running:
            return
        self._passes += backward
        if backward and self._passes < FEW_PASSES:
            return
        self._require(*LOOP, *self._beside_loop())
        self._leave_to_run(frame)

    def _leave_to_run(self, frame: FrameType, trainer: Any = None) -> NoReturn:
        """Leave a training to the run that looks at it; of several processes each tells first what it trains with."""
        self._ranks = Ranks()
        if self._ranks.position is not None and not self.reports and not self._followed:
            self._walk_as_rank(lambda: self._measure_rank(frame, trainer), lambda: self._compare_ranks(frame, trainer))
        if self._is_left:
            self._swallowed += 1
            if self._swallowed == MOST_SWALLOWED:
                self._leave()
        else:
            self._ended(UNWALKED)
        raise WalkFinished

    def _compare_ranks(self, frame: FrameType, trainer: Any) -> None:
        """Judge what the processes train with."""
        from trainwright.adapters.process_fingerprint import rank_setup

        setup = rank_setup(self._seen or Seen(), frame, trainer)
        judge(self._walk, setup)
        self._ended(" ".join([*remarks(setup.ranks, setup.words), UNWALKED]))

    def _train_unwalked(self) -> None:
        """Handle a gradient of JAX: what the script writes from now on is kept away, and it is left after a while."""
        if self._every and self._unwalked_until is None and self._leaving is not None and active():
            self._unwalked_until = now() + UNWALKED_SECONDS
            self._keep_away()
            self._leaving.enter_context(stopped_after(UNWALKED_SECONDS))

    @property
    def _is_left(self) -> bool:
        """Whether the script was told to end, or is not to go on."""
        return bool(self.reports) and not self._onward.under_way

    def _reach_call(self, frame: FrameType) -> None:
        """Record that a call of this frame begins a training."""
        with undisturbed():
            behind = behind_call([frame, *callers(frame)]) if self._every else []
        self._reach(place_of(frame), behind)

    def _leave(self) -> None:
        """End the process when a bare `except:` around the loop's step has kept the script alive after its check."""
        if self._leaving is not None:
            self._leaving.close()
        self._tell()
        self._leave_with()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_status(self.reports))

    def in_child(self, work: Callable[[], Any]) -> None:
        """Do the work of a process that the script started; if that is its training, this process walks, and ends."""
        self._say = self._walk.say = lambda text: None
        self._done = lambda report, further: self._ranks.put_report(report)
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
            os._exit(2 if self._own_error is not None else 0)  # past the handlers of the script that was copied

    def children_ended(self) -> None:
        """Handle the end of the processes that the script started: if one of them walked, leave the script."""
        if self._report_of_children():
            raise WalkFinished

    def on_fit(self, trainer: Any, frame: FrameType, given: Mapping[str, Any], original: Callable[[], Any]) -> Any:
        """Handle a call of a Lightning Trainer's `fit`: leave the script."""
        if self._is_running:
            return original()
        if self._is_left:
            raise WalkFinished
        self._require(*LIGHTNING, *packages_of(trainer))
        return self._leave_to_run(frame)

    def on_model_fit(
        self, model: Any, frame: FrameType, given: Mapping[str, Any], original: Callable[[Mapping[str, Any]], Any]
    ) -> Any:
        """Handle a call of a model's `fit`: walk it and leave the script, or go on behind it."""
        assert self._seen is not None
        if self._is_running:
            return original({})
        if self._is_left:  # the script caught WalkFinished and goes on
            raise WalkFinished
        self._require(*packages_of(model))
        self._reach_call(frame)
        changed = self._walk_model_fit(model, frame, given) if self._onward.walks_this else {}

        def run(seconds: float) -> tuple[Any, bool]:
            from trainwright.adapters.keras.shortened import fit_shortly

            return fit_shortly(model, {**given, **changed}, original, seconds)

        return self._run_shortly(run)

    def on_failed_call(self, trainer: Any, name: str, error: Exception, frame: FrameType) -> None:
        """Handle a `trainer.evaluate()` or `predict()` that raised before training: leave the script to the run, which finds why."""
        if not self._onward.number:  # it was trained shortly: this may be a consequence
            self._leave_to_run(frame, trainer)

    def unsupported(self, why: str) -> None:
        """Handle a training whose framework is too old to be walked: leave the script, and say so."""
        self._own_error = UnsupportedVersion(why)
        raise WalkFinished

    # One of several processes

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
                walk()
        except Exception as error:  # ours: out, past the user's handlers
            self._own_error = error
        finally:
            self._walking = False
        raise WalkFinished

    # How it is done

    def _require(self, *packages: str) -> None:
        """Leave the script if one of these packages is too old."""
        try:
            require(*packages)
        except UnsupportedVersion as error:
            self.unsupported(str(error))

    def _beside_loop(self) -> list[str]:
        built = {c.name for c in self._seen.constructions.values()} if self._seen else set()
        return [package for kind, package in BESIDE_LOOP.items() if kind in built]

    def _raised(self, error: Exception) -> None:
        """Handle an exception that ended the script: the user's, or our own, which is raised later."""
        if is_own(error):
            self._own_error = error
            return
        if self._followed or self._report_of_children():
            return
        if self._onward.under_way:
            self._end_following(error)
            self._ended(f"Before it reached training {self._options.training}, the script raised {failure_of(error)}.")
            return
        if self.reports:
            return
        if loop_of_error(error) is not None:
            self._ended(UNWALKED)
            return
        self._ended_by(error)
