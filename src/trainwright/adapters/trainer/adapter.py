"""Walks a Hugging Face Trainer on a copy, so that nothing affects the user's."""

from __future__ import annotations

from types import FrameType
from typing import Any

from trainwright.adapters import short_runs
from trainwright.adapters.base import Learn, Looked, ReceivedRows, Run, Train
from trainwright.adapters.learning.certificate import learn
from trainwright.adapters.learning.received import receive_first
from trainwright.adapters.torch import runs
from trainwright.adapters.torch.batches import image_facts, several_batches_facts, token_facts
from trainwright.adapters.torch.called_model import accepted_names, rows_of
from trainwright.adapters.torch.collation import collates_equal_rows, forms_without, item_facts
from trainwright.adapters.torch.optimizer import optimizer_facts
from trainwright.adapters.torch.schedule import dry_run
from trainwright.adapters.torch.vocabulary import vocabulary_facts
from trainwright.adapters.trainer import data_sets, evaluation, setup, step_facts
from trainwright.adapters.trainer.learning import TrainerLearner
from trainwright.adapters.trainer.row_changes import collator_masks, dropped_columns, token_rows
from trainwright.adapters.trainer.training import TrainerTraining
from trainwright.adapters.trainer.worst_rows import try_rows
from trainwright.core.repair import Repair
from trainwright.seams.listening.seen import Seen
from trainwright.seams.torch.watch import Observer
from trainwright.stages import (
    BatchFacts,
    DatasetFacts,
    EvaluationFacts,
    LearningFacts,
    OddRowFacts,
    OptimizerFacts,
    SetupFacts,
)
from trainwright.tensors.torch import objects as tensors


class HFTrainerAdapter:
    """One `Trainer` that is about to train."""

    framework = "transformers"

    def __init__(self, trainer: Any, frame: FrameType, seen: Seen) -> None:
        self.trainer = trainer
        self.training = TrainerTraining(trainer, frame, seen)
        self._frame = frame
        self._seen = seen
        self._shown: list[ReceivedRows] = []

    def measure_setup(self) -> SetupFacts:
        return setup.setup_facts(
            self.trainer,
            self._frame,
            self._seen,
            planned_updates=self.training.planned_updates(),
            ignored=self.training.ignored_arguments,
        )

    def measure_dataset(self) -> DatasetFacts:
        return data_sets.measure_dataset(self.training, self._frame)

    def measure_batch(self) -> BatchFacts:
        training = self.training
        names, takes_any = accepted_names(training.trainer.model)
        collator = training.trainer.data_collator
        facts: dict[str, Any] = {
            "accepts": names,
            "accepts_any": takes_any,
            "collator": getattr(collator, "__name__", type(collator).__name__),
        }
        batch, failure, recorder = training.first_batch(evaluation=False)
        facts["dropped_columns"] = dropped_columns(training.trainer)
        if failure is None and batch is not None:
            facts["collator_masks"] = collator_masks(recorder, batch)
            failure, recorder = training.form_pool()
        facts |= item_facts(recorder)
        if failure is not None or batch is None:
            return BatchFacts(
                failure=failure,
                equal_rows_collate=collates_equal_rows(recorder),
                forms_without=forms_without(recorder),
                **facts,
            )
        return self._batch_facts(batch, facts)

    def _batch_facts(self, batch: Any, facts: dict[str, Any]) -> BatchFacts:
        training, model = self.training, self.training.trainer.model
        held = training.first_batch(evaluation=True)[0] if training.evaluation_set() is not None else None
        key, tokenizer = training.label_key(batch), training.tokenizer()
        tokens = token_rows(training.trainer.train_dataset) if tokenizer is not None else []
        return BatchFacts(
            rows=rows_of(batch),
            tensors={k: tensors.facts(v) for k, v in batch.items() if tensors.is_tensor(v)},
            others={k: type(v).__name__ for k, v in batch.items() if not tensors.is_tensor(v)},
            label_key=key,
            evaluation_tensors={k: tensors.facts(v) for k, v in (held or {}).items() if tensors.is_tensor(v)},
            vocabulary_facts=vocabulary_facts(tokens, tokenizer, model) if tokens else None,
            images=image_facts(batch),
            **token_facts(batch, key, model, tokenizer),
            **several_batches_facts(training.pool.batches, key, model, tokenizer),
            **facts,
        )

    def measure_step(self) -> step_facts.StepFacts:
        return step_facts.measure_step(self.training, self._seen)

    def measure_optimizer(self) -> OptimizerFacts:
        training, trainer = self.training, self.training.trainer
        batch = training.pool.take(1, seed=0)[0]
        training.reset()
        with training.ready(0):
            training.build_optimizer()
            moved = False
            before = {n: p.detach().clone() for n, p in trainer.model.named_parameters() if p.requires_grad}
            schedules = [s for s in (trainer.lr_scheduler, self.trainer.lr_scheduler) if s is not None]
            counts = [getattr(s, "last_epoch", 0) for s in schedules]
            with Observer(training.wrapped, training.active.all).catching() as record:
                training.compute(batch, record)
                moved = any(getattr(s, "last_epoch", 0) > count for s, count in zip(schedules, counts))
                training.update()
            trainer.lr_scheduler = self.trainer.lr_scheduler
            own, planned = self.trainer.optimizer, training.planned_updates()
            own_schedule = setup.makes_schedule(self.trainer)
            facts = optimizer_facts(
                [trainer.optimizer],
                trainer.model,
                before,
                record.failure,
                dry_run(trainer, planned),
                user_built=training.given_optimizer is not None,
                planned=planned,
                rate_given=setup.rate_is_written(self.trainer, self._seen),
                rate_position=self._seen.position_given(own, "lr") if own is not None else None,
                schedule_given=own_schedule,
                schedule_first=moved,
                warmup=trainer.args.get_warmup_steps(planned) if planned and not own_schedule else None,
            )
            training.warmup_updates = short_runs.warmup_updates(facts.schedule)
        training.reset()
        return facts

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        training = self.training
        training.reset()
        with training.ready(0):
            facts = evaluation.measure(
                training.trainer, training.evaluation_set(), batches, training.active.all, training.mended_batch
            )
        training.reset()
        return facts

    def train(self, request: Train) -> Run:
        return runs.train(self.training, request)

    def learn(self, request: Learn) -> LearningFacts:
        return learn(TrainerLearner(self.training), request, self._shown)

    def look_at_rows(self, seconds: float) -> Looked:
        rows = self._shown or receive_first(TrainerLearner(self.training), seconds)
        return Looked(rows=rows, scope={**self.training.scope, "": self.training.model})

    def try_rows(self, *, dataset: DatasetFacts, seconds: float) -> OddRowFacts:
        return try_rows(self.training, dataset, seconds)

    def apply(self, repair: Repair) -> None:
        self.training.apply(repair)

    def put_back(self) -> None:
        self.training.put_back()
