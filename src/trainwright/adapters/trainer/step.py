"""One observed step of a Trainer's twin, and what further looks at it show, as facts of three stages."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from trainwright.adapters.data.reading import length
from trainwright.adapters.torch.batches import POOLED, other_padding_labels, special_ids
from trainwright.adapters.torch.called_model import Probe, is_out_of_memory
from trainwright.adapters.torch.cpu_replay import is_device_error
from trainwright.adapters.torch.gradients import further_steps, graph_facts
from trainwright.adapters.torch.loss import further_losses, loss_facts
from trainwright.adapters.torch.memory import measure_memory
from trainwright.adapters.torch.step import (
    device_failure_kept,
    forward_facts,
    gradient_facts,
    stay_identical,
    with_origins,
)
from trainwright.adapters.torch.vocabulary import vocabulary_of
from trainwright.adapters.trainer.training import Twin, type_like
from trainwright.core.stage import Stage
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import Seen
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.watch import Observer, StepRecord
from trainwright.stages.forward import ForwardFacts, MemoryFacts
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.loss import LossFacts

Batch = Mapping[str, Any]
StepFacts = tuple[ForwardFacts, LossFacts | None, GradientFacts | None]


def measure_step(twin: Twin, seen: Seen) -> StepFacts:
    """Take one observed step without an update, then the further ones; what follows a stage that raised is None."""
    batches = twin.pool.take(2, seed=0)
    twin.reset()
    with twin.ready(0):
        watch = GraphWatch(twin.trainer.model, twin.change.all, detail=True)
        record, inputs = _observed(twin, seen, batches[0], watch)
        if is_device_error(record.error) and not twin.device_lost:
            twin.continue_on_cpu()
            return device_failure_kept(record.failure, *measure_step(twin, seen))
        memory = _memory(twin, batches[0]) if is_out_of_memory(record.error) else None
        gradients = _gradients(twin, seen, record, watch)
        forward = replace(_forward(twin, seen, record, inputs, batches), memory=memory)
        loss = loss_facts(record, batches[0], twin.label_of(batches[0]))
    twin.reset()
    return _further(twin, record, (forward, loss, gradients), batches)


def _observed(twin: Twin, seen: Seen, batch: Batch, watch: GraphWatch) -> tuple[StepRecord, dict[str, Any]]:
    """The step's record, and what the model was called with."""
    inputs: dict[str, Any] = {}
    observer = Observer(
        twin.wrapped, twin.change.all, detail=True, places=seen.modules.get, asked_at=seen.asked_at
    )
    with tolerated():  # an optimizer that cannot be built is the optimizer stage's matter
        twin.build_optimizer()
    with _capturing(twin.trainer.model, inputs), observer.catching() as record:
        twin.compute(batch, record, watch)
    if record.failed_stage == Stage.GRADIENTS and record.loss is None and record.loss_tensor is not None:
        record.loss = float(record.loss_tensor.detach())
    return record, inputs


@contextlib.contextmanager
def _capturing(model: nn.Module, inputs: dict[str, Any]) -> Iterator[None]:
    """Keep what the model is called with, first call only."""

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
    twin: Twin, seen: Seen, record: StepRecord, inputs: dict[str, Any], batches: list[Batch]
) -> ForwardFacts:
    model = twin.trainer.model
    probe = Probe(
        model=model,
        inputs=inputs or dict(batches[0]),
        other={k: v for k, v in batches[1].items() if k in inputs} if len(batches) > 1 and inputs else None,
        vocabulary=vocabulary_of(model),
        pad_id=getattr(twin.tokenizer(), "pad_token_id", None),
        label_keys=tuple(dict.fromkeys([*twin.trainer.label_names, "labels", "label", "label_ids"])),
        met_rows=_rows_to_come(twin),
        repairs=twin.change.all,
    )
    facts = forward_facts(record, model, probe, seen.modules.get, _fresh(seen, model))
    parameters = with_origins(facts.parameters, model, seen.frozen_at, twin.versions_at_start)
    return replace(facts, parameters=parameters)


def _gradients(twin: Twin, seen: Seen, record: StepRecord, watch: GraphWatch) -> GradientFacts | None:
    trainer = twin.trainer
    facts = gradient_facts(
        record, trainer.model, seen.modules.get, trainer.args.max_grad_norm or None,
        trainer.args.gradient_accumulation_steps,
    )  # fmt: skip
    if facts is None:
        return None
    return graph_facts(facts, watch, trainer.model, {"trainer": trainer}, seen.modules.get)


def _further(twin: Twin, record: StepRecord, facts: StepFacts, batches: list[Batch]) -> StepFacts:
    """The facts with what more steps show, each from the weights at the start."""
    forward, loss, gradients = facts
    if loss is not None:
        with twin.ready(0):
            change = _padding_label_change(twin, batches[0]) if loss.failure is None else None
            loss = further_losses(
                replace(loss, padding_label_change=change), gradients, twin, batches, record
            )
        twin.reset()
    if gradients is not None:
        with twin.ready(0):
            with contextlib.suppress(
                Exception
            ):  # an optimizer that cannot be built is the optimizer stage's matter
                twin.build_optimizer()
            gradients = further_steps(gradients, twin, twin.pool.take(POOLED, seed=0))
        twin.reset()
    if record.failure is None:
        with twin.ready(0):
            step = functools.partial(twin.gradients_of, batches[-1])
            forward = replace(
                forward, parameters=stay_identical(forward.parameters, twin.trainer.model, step)
            )
        twin.reset()
    return forward, loss, gradients


def _rows_to_come(twin: Twin) -> dict[str, tuple[int, bool]]:
    """Other numbers of rows that training and evaluation will meet, and whether in training mode."""
    args, found = twin.trainer.args, {}
    if (rows := length(twin.trainer.train_dataset)) and not args.dataloader_drop_last:
        found["the last training batch"] = (rows % args.train_batch_size, True)
    if twin.trainer.eval_dataset is not None and (held := length(twin.evaluation_set())):
        found["the first evaluation batch"] = (min(held, args.eval_batch_size), False)
        if not args.dataloader_drop_last:
            found["the last evaluation batch"] = (held % args.eval_batch_size, False)
    return found


def _fresh(seen: Seen, model: nn.Module) -> frozenset[str] | None:
    """Names of the parameters that no checkpoint held; None where none was loaded."""
    known = {n: seen.is_fresh(model, n) for n, _ in model.named_parameters()}
    if seen.trained:  # an earlier training of the script may have trained them
        return frozenset()
    return None if None in known.values() else frozenset(n for n, is_fresh in known.items() if is_fresh)


def _memory(twin: Twin, batch: Mapping[str, Any]) -> MemoryFacts:
    def update() -> Any:
        twin.build_optimizer()
        twin.update()
        return twin.trainer.optimizer

    facts = measure_memory(
        twin.trainer.model, batch, lambda rows: twin.gradients_of(type_like(batch, dict(rows))), update
    )
    twin.reset()
    return facts


def _padding_label_change(twin: Twin, batch: Mapping[str, Any]) -> float | None:
    key, (_, pad_id, eos_id) = twin.label_key(batch), special_ids(twin.trainer.model, twin.tokenizer())
    with tolerated():  # a loss that cannot be had twice shows nothing
        if key is None or (other := other_padding_labels(batch, key, pad_id, eos_id)) is None:
            return None
        before = twin.loss_of(batch)
        return abs(twin.loss_of(type_like(batch, {**batch, key: other})) - before) / (abs(before) + 1e-12)
    return None
