"""One run of a script under watch: what the script does is seen, and its trainings are walked as they are reached."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

from trainwright.adapters.base import Adapter
from trainwright.core.finding import Finding
from trainwright.core.repair import Call, Seam
from trainwright.core.report import Report
from trainwright.core.rule import Rule
from trainwright.errors import ScriptFailed, TrainwrightError, UsageError, WalkFinished
from trainwright.fixes.edits import with_diffs
from trainwright.options import Options
from trainwright.seams.accelerators import accelerators, lacks_gpu_memory
from trainwright.seams.intercept import listening
from trainwright.seams.later_calls import fit_lines, training_lines
from trainwright.seams.place import failure_of, keyword_places, place_of
from trainwright.seams.ranks import unconnected
from trainwright.seams.seen import Seen
from trainwright.seams.snapshot import RandomState
from trainwright.seams.training_loops import Loop, loop_of_error, loops_after, training_loop
from trainwright.stages.setup import RankFacts, SetupFacts
from trainwright.walk.closing import not_walked, stops, versions
from trainwright.walk.drive import pull
from trainwright.walk.missing import missing_name
from trainwright.walk.ranks import Ranks, remarks, report_of_children
from trainwright.walk.refused import refused_anywhere, refused_call
from trainwright.walk.trials import experiment
from trainwright.walk.walk import Walk

Say = Callable[[str], None]
# So often a script may go on with its loop although it was told to end.
MOST_SWALLOWED = 8


class Session:
    """One run of a script under watch: it is told what the script does, and walks its trainings.

    Args:
        train: after a walk that found no error, let the training go on for real.
    """

    def __init__(self, script: str, options: Options, *, train: bool = False, say: Say = lambda text: None,
                 done: Callable[[Report], None] = lambda report: None, strict: bool = False) -> None:  # fmt: skip
        self.reports: list[Report] = []
        self._script = script
        self._options = options
        self._train = train
        self._say = say
        self._done = done
        self._strict = strict
        self._walk = self._new_walk()
        self._seen: Seen | None = None
        self._own_error: Exception | None = None
        self._walking = False
        self._no_loops: set[tuple[Any, int]] = set()
        self._ranks = Ranks()
        self._followed = False
        self._swallowed = 0
        self.restart = False
        """The script is to be run anew, for real, in a process of its own."""

    def run(self, start: Callable[[], Any]) -> list[Report]:
        """Run the script; return a report of each training that was walked, or of why there was none."""
        try:
            with listening(self) as self._seen:
                start()
        except WalkFinished:
            pass
        except KeyboardInterrupt:
            if self._seen and self._seen.trained:  # it was the real training that was interrupted
                raise
            self._ended("Interrupted before training was reached.")
        except SystemExit as error:
            if self._seen and self._seen.trained:  # the script's own exit status, after its training
                raise
            self._ended(
                f"The script ended itself with sys.exit({error.code!r}) before it reached a training call."
            )
        except Exception as error:  # the user's script raised: that is what we came to see
            self._raised(error)
        if self._own_error is not None:
            raise self._own_error
        if not self.reports and not self._followed and not self._report_of_children():
            self._ended("The script ran to its end without a training call or loop that Trainwright knows.")
        return self.reports

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

    # What the script does (seams.seen.Listener)

    def refused(self, name: str, function: Callable[..., Any], keywords: Mapping[str, Any], error: Exception,
                frame: FrameType) -> Mapping[str, Any] | None:  # fmt: skip
        """A framework refused a construction: find the cause, and return mended keywords."""
        failure = replace(failure_of(error), where=place_of(frame))
        call = refused_call(name, function, keywords, failure)
        written = keyword_places(frame.f_code.co_filename, frame.f_lineno, name)
        call = replace(call, places={k: place for k, (place, _) in written.items()})
        self._learn_setup(
            SetupFacts(
                framework=call.library.split(" ")[0] or None,
                versions=versions(),
                refused=call,
                failure=failure,
            )
        )
        for finding in self._judge_setup():
            if finding.repair is None or finding.repair.seam != Seam.CONSTRUCT or not self._options.repair:
                continue
            changed = finding.repair.change(Call(seam=Seam.CONSTRUCT, given=dict(keywords)))
            self._walk.mended(finding)
            return changed.given
        return None

    def training(self, trainer: Any, frame: FrameType, original: Callable[[], Any]) -> Any:
        """The script calls for training: walk it; then train for real, or leave the script."""
        assert self._seen is not None
        if self._followed or (self.reports and not self._train):  # the script caught WalkFinished and goes on
            raise WalkFinished
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

    def looping(self, frame: FrameType) -> None:
        """The script does what a training step does: if a loop of its own trains, walk that loop and leave the script."""
        here = (frame.f_code, frame.f_lineno)
        if self._walking or here in self._no_loops or (self._seen and self._seen.trained):
            return
        loop = training_loop(frame)
        if loop is None:
            self._no_loops.add(here)
            return
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
        """A bare `except:` around the loop's step keeps the script alive after its check: end the process."""
        sys.stdout.flush()
        print(
            "trainwright: a bare `except:` in the script caught the end of the check; it ends here.",
            file=sys.stderr,
        )
        sys.stderr.flush()
        os._exit(1 if stops(self.reports[-1]) or self.reports[-1].faulty else 0)

    def in_child(self, work: Callable[[], Any]) -> None:
        """Do the work of a process that the script started; if that is its training, this process walks, and ends."""
        self._say = self._walk.say = lambda text: None
        self._done = lambda report: self._ranks.put_report(report)
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

    def fitting(
        self, trainer: Any, frame: FrameType, given: Mapping[str, Any], original: Callable[[], Any]
    ) -> Any:
        """The script calls `fit` of a Lightning Trainer: walk what it would train, and leave the script."""
        if self._seen and self._seen.trained:
            return original()
        if not self.reports:
            self._walk_fit(trainer, frame, given)
        raise WalkFinished

    def fitting_model(
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
        changed = self._walk_model_fit(model, frame, given)
        if self._train and not self._walk.interrupted and not stops(self.reports[-1]):
            self._seen.trained.add(id(model))
            self._walk = self._new_walk()
            return original(changed)
        raise WalkFinished

    def call_failed(self, trainer: Any, name: str, error: Exception, frame: FrameType) -> None:
        """`trainer.evaluate()` or `predict()` raised before training: walk, the cause will be on the way."""
        self._walk_training(trainer, frame)
        raise WalkFinished

    # One of several processes

    def _measure_loop(self, loop: Loop) -> RankFacts:
        from trainwright.adapters.lifted import LiftedLoop
        from trainwright.adapters.ranks import loop_rank

        assert self._ranks.position is not None
        return loop_rank(LiftedLoop(loop), self._seen or Seen(), self._ranks.position)

    def _measure_trainer(self, trainer: Any) -> RankFacts:
        from trainwright.adapters.ranks import trainer_rank

        assert self._ranks.position is not None
        return trainer_rank(trainer, self._ranks.position)

    def _walk_as_rank(self, measure: Callable[[], RankFacts], walk: Callable[[], None]) -> None:
        """Measure what this process has; if it is the first, walk with what all of them have. The script is left."""
        self._walking = True
        try:
            with unconnected():
                with _undisturbed():
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
                        "Several processes are not trained from here: start them as they were."
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

    def _walk_training(self, trainer: Any, frame: FrameType) -> None:
        def make() -> Adapter:
            from trainwright.adapters.hf_trainer import HFTrainerAdapter

            return HFTrainerAdapter(trainer, frame, self._seen or Seen())

        self._walk_adapter(make, lambda: "" if self._train else not_walked(training_lines(*_line(frame))))

    def _walk_model_fit(self, model: Any, frame: FrameType, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Walk a model's `fit`; return the arguments that training must be given anew."""
        from trainwright.adapters.keras import KerasAdapter

        made: list[KerasAdapter] = []

        def make() -> Adapter:
            made.append(KerasAdapter(model, given, frame, self._seen or Seen()))
            return made[0]

        self._walk_adapter(make, lambda: "" if self._train else not_walked(fit_lines(frame)))
        return made[0].for_training() if made else {}

    def _walk_loop(self, loop: Loop) -> None:
        from trainwright.adapters.lifted import LiftedLoop, callers
        from trainwright.adapters.loop import LoopAdapter

        seen = self._seen or Seen()
        try:
            with _undisturbed():  # to look at a script's names is to meet modules' deprecated ones
                body = LiftedLoop(loop, list(seen.optimizers.values()))
                later = loops_after(loop, list(callers(loop.frame)))
        except SyntaxError as error:  # `await` in the body
            self._ended(
                f"The training loop at line {loop.line} cannot be run by itself and was not walked: {error.msg}."
            )
            return

        def make() -> Adapter:
            with _undisturbed():
                return LoopAdapter(body, seen)

        lines = ", ".join(str(line) for line in later)
        remark = (
            f"The check ends at the first training loop; what trains at line {lines} was not walked."
            if later
            else ""
        )
        self._walk_adapter(make, lambda: " ".join(t for t in (remark, self._decide_restart()) if t))

    def _decide_restart(self) -> str:
        """Decide whether the script is run anew, and say so: its variables are not what they were."""
        report = self._walk.report()
        self.restart = self._train and not self._walk.interrupted and not stops(report)
        if not self._train:
            return ""
        if self.restart:
            return "The script now starts anew, for real, in a process of its own."
        return "The script was not run for real: mend what stands above first."

    def _walk_fit(self, trainer: Any, frame: FrameType, given: Mapping[str, Any]) -> None:
        from trainwright.adapters.lightning import LightningBody, fit_of
        from trainwright.adapters.loop import LoopAdapter

        seen = self._seen or Seen()
        # What the user's hooks raise on the way to the first step passes, as it would from fit itself.
        body = LightningBody(fit_of(trainer, given, frame), seen)
        self._walk_adapter(lambda: LoopAdapter(body, seen), self._decide_restart)

    def _walk_adapter(self, make: Callable[[], Adapter], ending: Callable[[], str]) -> None:
        walk = self._walk
        walk.clock.started = time.monotonic()
        self._walking = True
        try:
            adapter = make()
            try:
                with _undisturbed():
                    pull(walk, adapter)
            except Exception as error:  # ours: the user's were caught where their code was called
                walk.internal_error("the walk", error)
            finally:
                adapter.put_back()
            said = remarks(self._seen.ranks) if self._seen else []
            walk.message = " ".join(t for t in (walk.message, *said, ending()) if t)
            self._close(walk.report(adapter.framework, versions()))
        except (
            Exception
        ) as error:  # ours, and nothing can be said or trained after it: out, past the user's handlers
            self._own_error = error
            raise WalkFinished from error
        finally:
            self._walking = False

    def _raised(self, error: Exception) -> None:
        """An exception of the user's ended the script."""
        if self._followed or self._report_of_children():
            return
        if self.reports:
            if self._seen and self._seen.trained:
                raise ScriptFailed("the script raised while it was training") from error
            return
        if (loop := loop_of_error(error)) is not None:
            self._walk_loop(loop)
            return
        failure = failure_of(error)
        if isinstance(error, ImportError) and failure.function.startswith("runpy."):
            raise UsageError(f"-m takes the name of a module that can be run: {error}") from error
        call = refused_anywhere(error, failure)
        missing = missing_name(error, failure)
        self._learn_setup(
            SetupFacts(
                versions=versions(),
                failure=failure,
                refused=call,
                missing=missing,
                accelerators=accelerators("cuda") if lacks_gpu_memory(str(error)) else (),
                frozen_at=self._seen.freezing_lines() if self._seen else (),
            )
        )
        self._judge_setup()
        self._walk.message = "The script stopped before it reached training."
        self._close(self._walk.report(None, versions()))

    def _ended(self, message: str) -> None:
        if not self.reports:
            self._walk.message = message
            self._close(self._walk.report(None, versions()))

    def _close(self, report: Report) -> None:
        report = with_diffs(report)
        if self._ranks.follows:  # the first of the processes speaks
            self._followed = True
            self._ranks.put_failure(str(report.failure or report.message))
            return
        self.reports.append(report)
        self._done(report)

    def _learn_setup(self, facts: SetupFacts) -> None:
        self._walk.learn(facts)

    def _judge_setup(self) -> list[Finding]:
        kept: list[Finding] = []
        for rule in self._walk.rules_of_setup():
            kept += [f for f in _findings(self._walk, rule) if self._walk.keep(f)]
        return kept

    def _new_walk(self) -> Walk:
        return Walk(
            self._script, budget=self._options.budget, ignored=self._options.ignores, repair=self._options.repair,
            say=self._say, strict=self._strict, seed=self._options.seed,
        )  # fmt: skip


def _findings(walk: Walk, rule: Rule) -> list[Finding]:
    """Findings of a rule before there is anything to train: none of these rules experiments."""
    steps = experiment(walk, rule)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return list(end.value or [])


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """No warnings of frameworks between the report's lines; random numbers put back whatever happens."""
    import warnings

    state = RandomState()
    levels = _quieted_loggers()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in levels:
            logger.setLevel(level)
        state.put_back()


def _quieted_loggers() -> list[tuple[Any, int]]:
    import logging

    loggers = [logging.getLogger(n) for n in ("transformers", "accelerate", "datasets", "torch")]
    levels = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    return levels


def _line(frame: FrameType) -> tuple[str, int]:
    return frame.f_code.co_filename, frame.f_lineno
