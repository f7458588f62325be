"""Walks a handwritten training loop by running its body."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from trainwright.adapters.base import Learn, Looked, ReceivedRows, Run, Train
from trainwright.adapters.data.indexing import repetition_of
from trainwright.adapters.data.labels import alignment_of, label_copy_of
from trainwright.adapters.data.numbering import renumbered
from trainwright.adapters.data.odd_rows import MOST_ROWS, RowStep, try_extremes, try_unusable
from trainwright.adapters.data.source_tables import aligned_source
from trainwright.adapters.data.texts import cut_texts, text_facts, tokenizer_facts
from trainwright.adapters.learning.certificate import learn
from trainwright.adapters.learning.received import receive_first
from trainwright.adapters.loop import evaluation, setup, step_facts
from trainwright.adapters.loop.batches import step_on_rows
from trainwright.adapters.loop.body import Body
from trainwright.adapters.loop.data_sets import ReadSet, read_sets
from trainwright.adapters.loop.learning import LoopLearner
from trainwright.adapters.loop.lost_modes import lost_modes
from trainwright.adapters.loop.paired_rows import mispaired_rows
from trainwright.adapters.loop.sliced_rows import Columns, drawn_rows, labels_of_batches, step_on_columns
from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.loop.worst_rows import try_rows
from trainwright.adapters.torch import runs
from trainwright.adapters.torch.batches import image_facts, several_batches_facts, token_facts
from trainwright.adapters.torch.called_model import accepted_names
from trainwright.adapters.torch.collation import collates_equal_rows, forms_without, item_facts, stacked_lengths
from trainwright.adapters.torch.optimizer import is_rate_written, optimizer_facts
from trainwright.adapters.torch.sampler import sampler_of, sampler_weights
from trainwright.core import Facts, Failure, Repair
from trainwright.probes.splits.census import measure_split
from trainwright.probes.splits.labels import batch_order
from trainwright.probes.splits.transfer import transfer_of
from trainwright.probes.splits.two_sets import between
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import Seen, quiet
from trainwright.stages import (
    BatchFacts,
    BatchOrder,
    DatasetFacts,
    EvaluationFacts,
    Mispaired,
    OddRowFacts,
    OptimizerFacts,
    SetupFacts,
    SplitFacts,
)
from trainwright.stages.learning import CARRIED, TWO_LOSSES, LearningFacts
from trainwright.tensors.torch import objects as tensors
from trainwright.timing import now

# Time limit for collecting the first batches as the model receives them.
SECONDS = 5.0


class LoopAdapter:
    """A loop that is about to begin."""

    def __init__(self, body: Body, seen: Seen) -> None:
        self.training = LoopTraining(body, seen)
        self.framework = body.framework
        self._data: Any = None
        """The training set, once it was read."""
        self._shown: list[ReceivedRows] = []

    def measure_setup(self) -> SetupFacts:
        return setup.setup_facts(self.training)

    def measure_dataset(self) -> DatasetFacts:
        training = self.training
        with quiet():
            read, held = read_sets(training)
        self._data = read.data
        loader = setup.first_loader(training)
        accepts = tuple(k for item in read.split.items[:1] for k in item if k not in read.label_names)
        train = measure_split(read.split, read.label_names, accepts)
        evaluation = measure_split(held.split, held.label_names, accepts) if held is not None else None
        tokenizer = training.tokenizer()
        alignment = alignment_of(read.split, train, accepts)
        batch_size = getattr(loader, "batch_size", None) or 0
        step = functools.partial(self._step_on_rows, read.data)
        return DatasetFacts(
            train=try_extremes(train, accepts, batch_size or MOST_ROWS, step),
            evaluation=evaluation,
            evaluation_place=held.labels_at if held is not None else None,
            accepts=accepts,
            alignment=alignment,
            aligned_source=aligned_source(read.split, train, alignment, accepts, training.scope),
            mispaired=self._mispaired(),
            sampler_weights=sampler_weights(loader, read.split, train),
            renumbered=renumbered(read.split, held.split if held else None, training.scope),
            evaluation_alignment=alignment_of(held.split, evaluation, accepts) if held and evaluation else None,
            label_copy=label_copy_of(read.split, train, accepts),
            tokenizer=tokenizer_facts(tokenizer, training.scope),
            shuffles=_shuffles(loader),
            drops_last=bool(getattr(loader, "drop_last", False)),
            batch_size=batch_size,
            label_place=read.labels_at,
            spent=getattr(training.body, "spent", None),
            repetition=repetition_of(read.data, read.split, train),
            texts=text_facts(read.split, tokenizer),
            cut_texts=cut_texts(read.data, tokenizer, training.scope),
            unusable_rows={"train": try_unusable(train, accepts, batch_size or MOST_ROWS, step)},
            batch_order=self._batch_order(loader),
            **self._between(read, train, held, evaluation, accepts),
        )

    def _mispaired(self) -> Mispaired | None:
        turns = self.training.take(1, seed=0) if self.training.items else []
        with tolerated():  # a step that raises is reported with the step
            return mispaired_rows(self.training, turns[0]) if turns else None
        return None

    def _between(
        self,
        read: ReadSet,
        train: SplitFacts,
        held: ReadSet | None,
        evaluation: SplitFacts | None,
        accepts: Sequence[str],
    ) -> dict[str, Any]:
        """Facts that involve both sets; of a tensor that batches are cut from, only the rows in batches count."""
        found = between(read.split, train, held.split if held else None, evaluation, accepts)
        if isinstance(read.data, Columns) and read.data.drawn:  # episodes number their classes anew
            found |= {"contradictions": None}
        else:
            found |= {"transfer": transfer_of(read.split, train, held.split if held else None, evaluation, accepts)}
        if isinstance(read.data, Columns) and found["overlap"]:
            with quiet():
                drawn = drawn_rows(self.training, read.data)
            if not any(row in drawn for _, row in found["overlap_rows"]):
                found |= {"overlap": 0, "overlap_rows": (), "copies": None}
        return found

    def _step_on_rows(self, data: Any, rows: Sequence[int]) -> RowStep | None:
        if isinstance(data, Columns):
            return step_on_columns(self.training, data, rows)
        return step_on_rows(self.training, rows)

    def _batch_order(self, loader: Any) -> BatchOrder | None:
        """The order of classes in the batches of a loop without a loader."""
        if loader is not None or not self.training.items:
            return None
        with tolerated():  # a step that raises is reported with the step
            return batch_order(labels_of_batches(self.training))
        return None

    def measure_batch(self) -> BatchFacts:
        training = self.training
        failure, recorder = training.form_pool()
        facts: dict[str, Any] = item_facts(recorder) if recorder is not None else {}
        if recorder is not None:
            collator = recorder.collator
            facts["collator"] = getattr(collator, "__name__", type(collator).__name__)
        if failure is not None and recorder is not None:
            return BatchFacts(
                failure=failure,
                equal_rows_collate=collates_equal_rows(recorder),
                forms_without=forms_without(recorder),
                stacked_lengths=stacked_lengths(recorder),
                **facts,
            )
        if failure is None and not training.items:
            failure = Failure(type="StopIteration", message="the loop is given no batch", where=None)
        if failure is not None:
            return BatchFacts(failure=failure, **facts)
        return self._batch_facts(facts)

    def _batch_facts(self, facts: dict[str, Any]) -> BatchFacts:
        training = self.training
        turns = training.take(len(training.items), seed=0)
        views = list(_within(SECONDS, (training.view(turn) for turn in turns)))
        batch, model, tokenizer = views[0], training.model, training.tokenizer()
        key = training.label_key(batch)
        names, takes_any = accepted_names(training.parts.roots[0])
        return BatchFacts(
            rows=training.rows_of(turns[0]),
            tensors={k: tensors.facts(v) for k, v in batch.items() if tensors.is_tensor(v)},
            others={k: type(v).__name__ for k, v in batch.items() if not tensors.is_tensor(v)},
            label_key=key,
            accepts=names,
            accepts_any=takes_any,
            images=image_facts(batch),
            **token_facts(batch, key, model, tokenizer),
            **several_batches_facts(views, key, model, tokenizer),
            **facts,
        )

    def measure_step(self) -> tuple[Facts | None, ...]:
        forward, loss, gradients = step_facts.measure_step(self.training)
        # A step that gets further after a repair reaches new lines.
        setup = self.measure_setup() if self.training.active.all else None
        if gradients is None:
            return forward, loss, gradients, setup
        names, place = lost_modes(self.training)
        return replace(forward, lost_modules=names, mode_lost_at=place), loss, gradients, setup

    def measure_optimizer(self) -> OptimizerFacts:
        training = self.training
        turn = training.take(1, seed=0)[0]
        training.reset()
        with training.ready(0):
            before = {n: p.detach().clone() for n, p in training.model.named_parameters() if p.requires_grad}
            training.build_optimizer()
            record = training.take_step(turn, 0)
            parts = training.parts
            calls = [c for c in parts.passed.calls if c in ("step", "schedule")]
            planned, pace = training.body.updates_planned(training), training.body.schedule_pace(training)
            facts = optimizer_facts(
                parts.optimizers,
                training.model,
                before,
                record.failure,
                training.dry,
                user_built=True,
                planned=planned,
                schedule_given=bool(parts.schedules),
                schedule_steps=round(planned * pace) if planned and parts.schedules else None,
                # Stepped with each of an update's micro-batches, it comes before the update that ends them.
                schedule_first=calls[:1] == ["schedule"] and (pace or 1) <= 1,
                rate_given=all(is_rate_written(o, training.seen) for o in parts.optimizers),
                rate_position=training.seen.position_given(parts.optimizers[0], "lr") if parts.optimizers else None,
            )
        training.reset()
        return facts

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        return evaluation.measure(self.training, batches)

    def train(self, request: Train) -> Run:
        if not self.training.parts.single:
            return Run(skipped=TWO_LOSSES)
        run = runs.train(self.training, request)
        if request.batches == 1 and _rises(run.losses) and self.training.carries():
            return Run(skipped=CARRIED)
        return run

    def learn(self, request: Learn) -> LearningFacts:
        if not self.training.parts.single:
            return LearningFacts(planned=request.planned, unknown=TWO_LOSSES)
        return learn(LoopLearner(self.training), request, self._shown)

    def look_at_rows(self, seconds: float) -> Looked:
        rows = self._shown or receive_first(LoopLearner(self.training), seconds)
        return Looked(rows=rows, scope={**self.training.scope, "": self.training.model})

    def try_rows(self, *, dataset: DatasetFacts, seconds: float) -> OddRowFacts:
        if not self.training.parts.single or not self.training.items:
            return OddRowFacts()
        return try_rows(self.training, self._data, dataset, seconds)

    def apply(self, repair: Repair) -> None:
        self.training.apply(repair)

    def put_back(self) -> None:
        self.training.put_back()


def _rises(losses: Sequence[float]) -> bool:
    """Whether a loss is a number and ended above where it began."""
    return len(losses) > 1 and losses[-1] > losses[0]


def _shuffles(loader: Any) -> bool | None:
    """Whether a loader draws rows in another order than they are read in here; None if that cannot be determined.

    An iterable set is read here as training reads it, including its own shuffling.
    """
    if loader is None:
        return None
    if isinstance(getattr(loader, "dataset", None), torch.utils.data.IterableDataset):
        return False
    sampler = sampler_of(loader)
    kind = type(sampler).__name__ if sampler is not None else ""
    if not kind or "Iterable" in type(sampler).__name__ or "Infinite" in kind:
        return None
    return "Sequential" not in kind


def _within(seconds: float, views: Iterator[Any]) -> Iterator[Any]:
    """As many as time allows, at least one."""
    started = now()
    for view in views:
        yield view
        if now() - started > seconds:
            return
