"""One observed step of a Trainer's training and further probes, as facts of three stages."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from trainwright.adapters.data.reading import length
from trainwright.adapters.torch.batches import POOLED, other_padding_labels, special_ids
from trainwright.adapters.torch.called_model import Probe, rows_of, take_rows
from trainwright.adapters.torch.gradients import further_steps, graph_facts
from trainwright.adapters.torch.loss import further_losses, loss_facts
from trainwright.adapters.torch.memory import measure_memory
from trainwright.adapters.torch.step_facts import (
    device_failure_kept,
    forward_facts,
    gradient_facts,
    stay_identical,
    with_origins,
)
from trainwright.adapters.torch.vocabulary import vocabulary_of
from trainwright.adapters.trainer.training import TrainerTraining, type_like
from trainwright.core.stage import Stage
from trainwright.seams.devices.memory_owners import is_out_of_memory
from trainwright.seams.devices.release import is_device_error
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.hearing import step_heard
from trainwright.seams.listening.seen import Seen
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.step_record import StepRecord
from trainwright.seams.torch.watch import Observer
from trainwright.stages import ForwardFacts, GradientFacts, LossFacts, MemoryFacts

Batch = Mapping[str, Any]
StepFacts = tuple[ForwardFacts, LossFacts | None, GradientFacts | None]


def measure_step(training: TrainerTraining, seen: Seen) -> StepFacts:
    """Take one observed step without an update, then the further ones; stages after one that raised are None."""
    batches = training.pool.take(2, seed=0)
    training.reset()
    with training.ready(0):
        watch = GraphWatch(training.trainer.model, training.active.all, detail=True)
        record, inputs = _observed(training, seen, batches[0], watch)
        if is_device_error(record.error) and not training.device_lost:
            training.continue_on_cpu()
            return device_failure_kept(record.failure, *measure_step(training, seen))
        memory = _memory(training, batches[0]) if is_out_of_memory(record.error) else None
        gradients = _gradients(training, seen, record, watch)
        forward = replace(_forward(training, seen, record, inputs, batches), memory=memory)
        loss = loss_facts(record, batches[0], training.label_of(batches[0]))
    training.reset()
    return _further(training, record, (forward, loss, gradients), batches)


def _observed(
    training: TrainerTraining, seen: Seen, batch: Batch, watch: GraphWatch
) -> tuple[StepRecord, dict[str, Any]]:
    """The step's record, and the model's inputs."""
    inputs: dict[str, Any] = {}
    observer = Observer(
        training.wrapped, training.active.all, detail=True, places=seen.modules.get, asked_at=seen.asked_at
    )
    with tolerated():  # an optimizer that cannot be built is reported by the optimizer stage
        training.build_optimizer()
    with _capturing(training.trainer.model, inputs), observer.catching() as record, step_heard():
        training.compute(batch, record, watch)
    if record.failed_stage == Stage.GRADIENTS and record.loss is None and record.loss_tensor is not None:
        record.loss = float(record.loss_tensor.detach())
    return record, inputs


@contextlib.contextmanager
def _capturing(model: nn.Module, inputs: dict[str, Any]) -> Iterator[None]:
    """Record the model's inputs, for the first call only."""

    def keep(module: nn.Module, args: Any, kwargs: Any) -> None:
        if not inputs:
            inputs.update({str(i): v for i, v in enumerate(args)})
            inputs.update({k: v for k, v in kwargs.items() if k != "num_items_in_batch"})

    hook = model.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def _forward(
    training: TrainerTraining, seen: Seen, record: StepRecord, inputs: dict[str, Any], batches: list[Batch]
) -> ForwardFacts:
    model = training.trainer.model
    probe = Probe(
        model=model,
        inputs=inputs or dict(batches[0]),
        other={k: v for k, v in batches[1].items() if k in inputs} if len(batches) > 1 and inputs else None,
        vocabulary=vocabulary_of(model),
        pad_id=getattr(training.tokenizer(), "pad_token_id", None),
        label_keys=tuple(dict.fromkeys([*training.trainer.label_names, "labels", "label", "label_ids"])),
        met_rows=_rows_to_come(training),
        repairs=training.active.all,
    )
    facts = forward_facts(record, model, probe, _fresh(seen, model))
    parameters = with_origins(facts.parameters, model, seen.frozen_at, training.versions_at_start)
    return replace(facts, parameters=parameters)


def _gradients(training: TrainerTraining, seen: Seen, record: StepRecord, watch: GraphWatch) -> GradientFacts | None:
    trainer = training.trainer
    facts = gradient_facts(
        record,
        trainer.model,
        seen.modules.get,
        trainer.args.max_grad_norm or None,
        trainer.args.gradient_accumulation_steps,
    )
    if facts is None:
        return None
    return graph_facts(facts, watch, trainer.model, {"trainer": trainer}, seen.modules.get)


def _further(training: TrainerTraining, record: StepRecord, facts: StepFacts, batches: list[Batch]) -> StepFacts:
    """The facts with the results of further steps, each from the initial weights."""
    forward, loss, gradients = facts
    if forward.fails_at_rows is not None and _takes_rows(training, batches[0], forward.fails_at_rows):
        forward = forward.with_any_rows()
    if loss is not None:
        with training.ready(0):
            change = _padding_label_change(training, batches[0]) if loss.failure is None else None
            loss = further_losses(replace(loss, padding_label_change=change), gradients, training, batches, record)
        training.reset()
    if gradients is not None:
        with training.ready(0):
            with tolerated():  # an optimizer that cannot be built is reported by the optimizer stage
                training.build_optimizer()
            gradients = further_steps(gradients, training, training.pool.take(POOLED, seed=0))
        training.reset()
    if record.failure is None:
        with training.ready(0):
            step = functools.partial(training.gradients_of, batches[-1])
            forward = replace(forward, parameters=stay_identical(forward.parameters, training.trainer.model, step))
        training.reset()
    return forward, loss, gradients


def _takes_rows(training: TrainerTraining, batch: Batch, count: int) -> bool:
    """Whether the Trainer's own step, which may be the user's, takes a batch of this many rows."""
    rows = rows_of(batch)
    other = type_like(batch, take_rows(batch, [i % rows for i in range(count)])) if rows else batch
    with training.ready(0), Observer(training.wrapped, training.active.all).catching() as record:
        training.compute(other, record)
    training.reset()
    return bool(rows) and record.failure is None


def _rows_to_come(training: TrainerTraining) -> dict[str, tuple[int, bool]]:
    """Other batch sizes that training and evaluation will have, and whether in training mode."""
    args, found = training.trainer.args, {}
    if (rows := length(training.trainer.train_dataset)) and not args.dataloader_drop_last:
        found["the last training batch"] = (rows % args.train_batch_size, True)
    if training.trainer.eval_dataset is not None and (held := length(training.evaluation_set())):
        found["the first evaluation batch"] = (min(held, args.eval_batch_size), False)
        if not args.dataloader_drop_last:
            found["the last evaluation batch"] = (held % args.eval_batch_size, False)
    return found


def _fresh(seen: Seen, model: nn.Module) -> frozenset[str] | None:
    """Names of the parameters that no checkpoint contained; None if none was loaded."""
    known = {n: seen.is_fresh(model, n, p) for n, p in model.named_parameters()}
    return None if None in known.values() else frozenset(n for n, is_fresh in known.items() if is_fresh)


def _memory(training: TrainerTraining, batch: Mapping[str, Any]) -> MemoryFacts:
    def update() -> Any:
        training.build_optimizer()
        training.update()
        return training.trainer.optimizer

    facts = measure_memory(
        training.trainer.model, batch, lambda rows: training.gradients_of(type_like(batch, dict(rows))), update
    )
    training.reset()
    return facts


def _padding_label_change(training: TrainerTraining, batch: Mapping[str, Any]) -> float | None:
    key, (_, pad_id, eos_id) = (training.label_key(batch), special_ids(training.trainer.model, training.tokenizer()))
    with tolerated():  # a loss that cannot be computed twice tells nothing
        if key is None or (other := other_padding_labels(batch, key, pad_id, eos_id)) is None:
            return None
        before = training.loss_of(batch)
        return abs(training.loss_of(type_like(batch, {**batch, key: other})) - before) / (abs(before) + 1e-12)
    return None
