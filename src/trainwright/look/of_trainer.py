"""A Trainer: it holds its parts, evaluates by itself, and is asked once more behind the run, in its process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from trainwright.adapters.learning import measure_trained
from trainwright.adapters.process_fingerprint import trainer_rank
from trainwright.adapters.torch.called_model import accepted_names
from trainwright.adapters.torch.failed_call import CallOutside
from trainwright.adapters.torch.optimizer import continue_rates
from trainwright.adapters.trainer import evaluation
from trainwright.adapters.trainer.evaluation import evaluation_set_of
from trainwright.adapters.trainer.repairs import find_tokenizer
from trainwright.adapters.trainer.setup import changes_of_rows, measure_setup, rate_is_written
from trainwright.core import FactsByKind, Failure, Place
from trainwright.frameworks.label_names import ARGUMENTS
from trainwright.look.facts import set_fields
from trainwright.look.of_loop import LoopTraining
from trainwright.look.repairs_of_torch import Repairing
from trainwright.look.replay import Replay
from trainwright.look.row_steps import RowSteps
from trainwright.look.sets import list_data
from trainwright.look.state import Look, Sets, Trainings
from trainwright.look.trainer_batches import (
    MOST_SECONDS,
    READING_SECONDS,
    TrainerLearner,
    TrainerSteps,
    change_padding,
    find_anomaly,
    measure_step_memory,
)
from trainwright.seams.devices.memory_owners import is_out_of_memory
from trainwright.seams.failures.blame import frames_of, is_own
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after
from trainwright.seams.listening.hearing import silenced
from trainwright.seams.listening.seen import quiet, seen
from trainwright.seams.processes import Position
from trainwright.seams.source.written import key_places
from trainwright.seams.state.snapshot import RandomState
from trainwright.stages import (
    BatchFacts,
    EvaluationFacts,
    ForwardFacts,
    GradientFacts,
    LearningFacts,
    LossFacts,
    RankFacts,
    SetupFacts,
)
from trainwright.stages.learning import FEWEST_UPDATES

# Updates of a schedule that it is followed over.
MOST_PLANNED = 20_000
_TRAINER, _EVALUATIONS = "transformers.trainer", ("evaluate", "predict")


class TrainerTraining(LoopTraining):
    """A training that a Trainer makes."""

    is_asked_again = True

    def __init__(self, trainer: Any, frame: FrameType) -> None:
        self.trainer, self._frame = trainer, frame
        self.had_optimizer, self.had_schedule = trainer.optimizer is not None, trainer.lr_scheduler is not None

    @property
    def model(self) -> Any:
        return self.trainer.model

    @property
    def largest_norm(self) -> float | None:  # type: ignore[override]
        return getattr(getattr(self.trainer, "args", None), "max_grad_norm", None) or None

    def mend(self, repairing: Repairing) -> None:
        repairing.mend_trainer(self.trainer, self._scope)

    def find_tokenizer(self, scope: Mapping[str, Any]) -> Any:
        return getattr(self.trainer, "processing_class", None) or super().find_tokenizer(scope)

    def list_owners(self, scope: Mapping[str, Any]) -> dict[str, Any]:
        return {"trainer": self.trainer}

    def measure_setup(self, look: Look, optimizers: list[Any], schedules: list[Any]) -> SetupFacts:
        return measure_setup(self.trainer, self._frame, seen())

    def is_rate_written(self, optimizers: Sequence[Any]) -> bool:
        return super().is_rate_written(optimizers) if self.had_optimizer else rate_is_written(self.trainer, seen())

    def find_row_changes(self) -> dict[str, Any]:
        return changes_of_rows(self.trainer)

    def continue_rates(self, rates: list[float], planned: int) -> list[float]:
        if not len(rates) < planned <= MOST_PLANNED:
            return rates
        with quiet():
            return [*rates, *continue_rates(self.trainer.lr_scheduler, planned - len(rates))]

    def count_warmup(self, planned: int) -> int | None:
        most: int = self.trainer.state.max_steps
        return max(0, int(self.trainer.args.get_warmup_steps(most)) - (most - planned))  # a resumed one has made some

    def form_sets(self, scope: Mapping[str, Any] | None = None) -> Sets:
        trainer, scope = self.trainer, self._scope if scope is None else scope
        return Sets(
            data=trainer.train_dataset,
            kind=self,
            label_names=tuple(dict.fromkeys([*trainer.label_names, *ARGUMENTS])),
            accepts=accepted_names(trainer.model)[0],
            scope=list_data(scope),
            tokenizer=find_tokenizer(trainer, scope),
            batch_size=trainer.args.train_batch_size,
            drops_last=trainer.args.dataloader_drop_last,
            held=[(evaluation_set_of(trainer), {}, lambda: True)],
        )

    def place_labels(self, column: str) -> Place | None:
        places = key_places(self._frame.f_code.co_filename, column, self._frame.f_lineno)
        return places[-1] if places else None

    def find_steps(
        self, replay: Replay | None, placed: Mapping[str, str], collate: Callable[[Any], Any]
    ) -> RowSteps | TrainerSteps:
        return super().find_steps(replay, placed, collate) if replay is not None else TrainerSteps(self.trainer)

    def add_trained(self, look: Look) -> None:
        random = RandomState()
        try:
            with stopped_after(MOST_SECONDS), quiet(), silenced():
                self._add_trained(look)
        except OutOfTime:
            pass
        except Exception as error:  # the script's, in data or functions that are asked once more
            if is_own(error, measuring=True):
                raise
        finally:
            random.put_back()

    def _add_trained(self, look: Look) -> None:
        """With its last weights, then with its first ones."""
        trainer, facts = self.trainer, look.facts
        tokenizer = find_tokenizer(trainer, look.sets.scope if look.sets is not None else {})
        learner = TrainerLearner(trainer)
        set_fields(facts, LossFacts, padding_label_change=change_padding(learner, tokenizer))
        facts[EvaluationFacts] = evaluation.measure(trainer)
        if look.replay.can_reset and look.updates >= FEWEST_UPDATES:
            learned = measure_trained(
                learner,
                updates=look.updates,
                planned=look.planned_updates,
                seconds=READING_SECONDS,
                reset=look.replay.reset,
            )
            facts |= {LearningFacts: learned} if learned is not None else {}
        gradients = facts.get(GradientFacts)
        if isinstance(gradients, GradientFacts) and any(one.non_finite for one in gradients.gradients):
            operation, where = find_anomaly(learner, look)
            set_fields(facts, GradientFacts, anomaly=operation, anomaly_at=where)

    def measure_end(self, error: Exception, failure: Failure, looking: Trainings) -> FactsByKind | None:
        known = looking.done[-1].facts if looking.done else {}
        if _is_of_evaluation(error):
            if looking.done:
                looking.failed = looking.done.pop()
            return {**known, **_evaluate_again(self.trainer, failure)}
        if is_out_of_memory(error):
            setup: FactsByKind = {kind: facts for kind, facts in known.items() if kind is SetupFacts}
            return {**setup, ForwardFacts: measure_step_memory(self.trainer, failure)}
        return None

    def measure_early_setup(self, loader: Any) -> SetupFacts:
        return measure_setup(self.trainer, self._frame, seen())

    def measure_rank(self, frame: FrameType, position: Position) -> RankFacts:
        return trainer_rank(self.trainer, position)

    def complete_called(self, facts: FactsByKind, setup: SetupFacts, call: CallOutside | None) -> FactsByKind:
        if isinstance(batch := facts.get(BatchFacts), BatchFacts):
            names, takes_any = accepted_names(self.trainer.model)
            changes = changes_of_rows(self.trainer)
            facts = facts | {BatchFacts: replace(batch, accepts=names, accepts_any=takes_any, **changes)}
        return facts | {SetupFacts: setup}

    @property
    def _scope(self) -> dict[str, Any]:
        return {**self._frame.f_globals, **self._frame.f_locals}


def _is_of_evaluation(error: Exception) -> bool:
    """Whether an evaluation was under way."""
    codes = {frame.f_code.co_name for frame in frames_of(error) if frame.f_globals.get("__name__") == _TRAINER}
    return not codes.isdisjoint(_EVALUATIONS)


def _evaluate_again(trainer: Any, failure: Failure) -> FactsByKind:
    """The facts of the evaluation, if it raises again what it raised before."""
    try:
        with stopped_after(MOST_SECONDS):
            found = evaluation.measure(trainer)
    except OutOfTime:
        return {}
    raised = found.failure or found.metrics_failure
    is_same_line = raised is not None and (raised.type, raised.where) == (failure.type, failure.where)  # of fewer rows
    return {EvaluationFacts: found} if is_same_line else {}
