"""The Hugging Face Trainer, walked on a copy of itself so that nothing done here reaches the user's."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn
from transformers.trainer_callback import CallbackHandler, DefaultFlowCallback

from trainwright.adapters import hf_dataset, hf_evaluation, hf_setup
from trainwright.adapters.aligning import alignment_of
from trainwright.adapters.base import Change, Run
from trainwright.adapters.hf_state import FurtherModels, script_state
from trainwright.adapters.batches import (
    POOLED,
    Pool,
    RecordingCollator,
    image_facts,
    other_padding_labels,
    several_batches_facts,
    special_ids,
    token_facts,
)
from trainwright.adapters.constant import Targets, TargetsSeen, constant_and_floor
from trainwright.adapters.data import as_mapping, length, objects_in_scope, read_split
from trainwright.adapters.hf_gradients import further_steps, graph_facts
from trainwright.adapters.hf_batch import dropped_columns, forms_without, item_facts, token_rows
from trainwright.adapters.torch_optimizer import optimizer_facts, set_rates
from trainwright.adapters.torch_loss import further_losses, loss_facts
from trainwright.adapters.torch_memory import measure_memory
from trainwright.adapters.torch_probes import Probe, is_out_of_memory, rows_of
from trainwright.adapters.torch_replay import is_device_error, on_cpu
from trainwright.adapters.torch_step import (
    device_failure_kept,
    forward_facts,
    gradient_facts,
    stay_identical,
    with_origins,
)
from trainwright.adapters.vocabulary import vocabulary_facts
from trainwright.adapters.torch_schedule import stand_in_schedule
from trainwright.core.finding import Failure
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.stage import Stage
from trainwright.seams.intercept import Seen, quiet
from trainwright.seams.place import failure_of
from trainwright.seams.snapshot import AttributeState, RandomState, loose_generators, seed_everything
from trainwright.seams.torch import ModelState, Observer, OptimizerState, StepRecord
from trainwright.seams.torch_graph import GraphWatch
from trainwright.stages.batch import BatchFacts
from trainwright.stages.census import measure_split, overlap
from trainwright.stages.dataset import UNTRIED, DatasetFacts, Lookalike, SplitFacts, TokenizerFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.forward import ForwardFacts, MemoryFacts
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.setup import SetupFacts
from trainwright.tensors import torch as tensors

_TOKENS = "input_ids"
# Over so many steps a short run's rate rises where training warms up: a fraction of any real warm-up, and enough for
# an adaptive optimizer's averages to settle.
WARMED_UP = 6
# A run whose loss stays above three times the first one for six steps, after a dozen, does not come back in thirty.
LOST_STEPS = 12
LOST_FACTOR = 3.0
OVERLAP_NAMED = 100_000
_PREPARED = ("forward", "_original_forward")  # what Accelerator.prepare_model writes into a model


class HFTrainerAdapter:
    """One `Trainer` that is about to train.

    The walk works on a shallow copy (`self.twin`) without callbacks or logging; the model and the accelerator
    are shared, and put back from snapshots.
    """

    framework = "transformers"

    def __init__(self, trainer: Any, frame: FrameType, seen: Seen) -> None:
        self.trainer = trainer
        self.change = Change()
        self._frame = frame
        self._seen = seen
        self._scope: dict[str, Any] = {**frame.f_globals, **frame.f_locals}
        self._random = RandomState(loose_generators(self._scope.values()))
        self._modules = AttributeState(trainer.model.modules())
        self._objects = AttributeState(
            [trainer, trainer.args, trainer.accelerator, trainer.accelerator.gradient_state, trainer.state,
             trainer.train_dataset, trainer.eval_dataset, trainer.data_collator, getattr(trainer.model, "config", None),
             trainer.optimizer]
        )  # fmt: skip
        self._given = ModelState(trainer.model)
        given_optimizer = trainer.optimizer
        self._given_optimizer = OptimizerState(given_optimizer) if given_optimizer is not None else None
        self._schedule = copy.copy(trainer.lr_scheduler.__dict__) if trainer.lr_scheduler is not None else None
        model_attributes = trainer.model.__dict__
        self._own_forward = {n: model_attributes[n] for n in _PREPARED if n in model_attributes}
        self._script = script_state(trainer)
        self._further = FurtherModels(self._script.models, trainer)
        self.twin = self._make_twin()
        self._start = self._given
        self._changes = {id(p): p._version for p in trainer.model.parameters()}
        self._start_modules = AttributeState(trainer.model.modules())
        self._pool: Pool | None = None
        self._ignored_arguments: dict[str, Any] = {}
        self._device_lost = False
        self._warmup_updates = 0

    # What the walk asks for

    def measure_setup(self) -> SetupFacts:
        trainer, args = self.trainer, self.trainer.args
        model = trainer.model
        built = self._seen.constructions.get(id(args))
        mixed = "bf16" if args.bf16 else "fp16" if args.fp16 and args.device.type != "cpu" else "fp32"
        counts = [(p.numel(), p.requires_grad) for p in model.parameters()]
        return SetupFacts(
            framework=self.framework,
            versions=versions(),
            call=f"{type(trainer).__name__}.train",
            arguments=hf_setup.resolved_arguments(args, built.keywords if built else frozenset()),
            places=hf_setup.find_places(trainer, self._frame, self._seen),
            overrides=tuple(hf_setup.overridden_methods(trainer, self._ignored_arguments)),
            model_class=type(model).__name__,
            loads_checkpoint=model in self._seen.loadings,
            parameters=sum(n for n, _ in counts),
            trainable_parameters=sum(n for n, needed in counts if needed),
            frozen_at=self._seen.freezing_lines(),
            ineffective_freezes=hf_setup.ineffective_freezes(model, self._seen),
            device=args.device.type,
            precision=mixed,
            batch_size=args.train_batch_size,
            accumulation=args.gradient_accumulation_steps,
            epochs=args.num_train_epochs,
            planned_updates=self.planned_updates(),
            world_size=args.world_size,
        )

    def measure_dataset(self) -> DatasetFacts:
        twin = self.twin
        names = list(dict.fromkeys([*twin.label_names, "labels", "label", "label_ids"]))
        accepts = self._accepts()[0]
        read, held = read_split("train", twin.train_dataset), None
        train, evaluation, fits = measure_split(read, names, accepts), None, [None, None]
        fits[0] = alignment_of(read, train, accepts)
        if (data := self._one_evaluation_set()) is not None:
            held = read_split("evaluation", data)
            evaluation = measure_split(held, names, accepts)
            fits[1] = alignment_of(held, evaluation, accepts)
        shared = overlap(train, evaluation)
        passed = [twin.train_dataset, twin.eval_dataset, data]
        return DatasetFacts(
            train=train,
            evaluation=evaluation,
            accepts=accepts,
            alignment=fits[0],
            evaluation_alignment=fits[1],
            lookalikes=tuple(self._lookalikes(train.rows)),
            tokenizer=self._tokenizer_facts(),
            decoded=self._decoded_items(),
            shuffles=self._shuffles(),
            drops_last=twin.args.dataloader_drop_last,
            batch_size=twin.args.train_batch_size,
            overlap=len(shared),
            overlap_rows=tuple(shared[:OVERLAP_NAMED]),
            sources=tuple(hf_dataset.label_sources(train, evaluation, held, self._scope, passed)),
            texts=hf_dataset.text_facts(read, self._tokenizer()),
            unusable_rows={s.name: self._try_rows(s) for s in (train, evaluation) if s is not None},
            label_place=hf_setup.label_place(self._frame, train.labels.column if train.labels else ""),
        )

    def _try_rows(self, facts: SplitFacts) -> str:
        """What training does with rows whose inputs or labels are missing or not finite; empty: nothing bad."""
        bad = hf_dataset.suspicious_rows(facts, self._accepts()[0])
        if not bad or facts.rows is None:
            return ""
        twin = self.twin
        kept = twin.train_dataset
        data = kept if facts.name == "train" else self._one_evaluation_set()
        # Half of each, in one batch: a loss that leaves unknown labels out needs some that are known.
        count = max(1, min(16, twin.args.train_batch_size) // 2)
        others = list(itertools.islice((r for r in range(facts.rows) if r not in bad), count))
        try:
            twin.train_dataset = tensors.choose_rows(data, others)
            usual = self._outcome() if others else ""
            if usual:
                return f"{UNTRIED}: {usual}"
            known = others if twin.args.train_batch_size > 1 else []
            twin.train_dataset = tensors.choose_rows(data, [*known, *sorted(bad)[:count]])
            return self._outcome()
        finally:
            twin.train_dataset = kept

    def _outcome(self) -> str:
        """What becomes of a step on the training set's first batch: an exception, a loss that is not finite, or ""."""
        batch, failure, _ = self._first_batch(evaluation=False)
        if batch is None or failure is not None:
            return str(failure)
        self.reset()
        with self._ready(0):
            with Observer(self._model_wrapped, self.change.all).catching() as record:
                self._compute(batch, record)
        self.reset()
        if record.failure is not None:
            return str(record.failure)
        return "" if record.loss is None or math.isfinite(record.loss) else f"the loss is {record.loss}"

    def measure_batch(self) -> BatchFacts:
        self._pool = None
        names, takes_any, required = self._accepts()
        facts: dict[str, Any] = {"accepts": names, "accepts_any": takes_any, "required": required}
        collator = self.twin.data_collator
        facts["collator"] = getattr(collator, "__name__", type(collator).__name__)
        batch, failure, recorder = self._first_batch(evaluation=False)
        facts["dropped_columns"] = dropped_columns(self.twin)
        if failure is None and batch is not None:
            failure, recorder = self._form_pool()
        facts |= item_facts(recorder)
        if failure is not None or batch is None:
            return BatchFacts(failure=failure, equal_rows_collate=_collates_equal_rows(recorder),
                              forms_without=forms_without(recorder), **facts)  # fmt: skip
        held, held_failure = None, None
        if self._one_evaluation_set() is not None:
            held, held_failure, _ = self._first_batch(evaluation=True)
        key, tokenizer = self._label_key(batch), self._tokenizer()
        tokens = token_rows(self.twin.train_dataset) if tokenizer is not None else []
        return BatchFacts(
            rows=rows_of(batch),
            tensors={k: tensors.facts(v) for k, v in batch.items() if tensors.is_tensor(v)},
            others={k: type(v).__name__ for k, v in batch.items() if not tensors.is_tensor(v)},
            label_key=key,
            evaluation_tensors={k: tensors.facts(v) for k, v in (held or {}).items() if tensors.is_tensor(v)},
            evaluation_failure=held_failure,
            vocabulary_facts=vocabulary_facts(tokens, tokenizer, self.twin.model) if tokens else None,
            images=image_facts(batch),
            **token_facts(batch, key, self.twin.model, tokenizer),
            **several_batches_facts(self.pool.batches, key, self.twin.model, tokenizer),
            **facts,
        )

    def _form_pool(self) -> tuple[Failure | None, RecordingCollator]:
        """Form the first batches; one of them may fail where the very first did not."""
        recorder = RecordingCollator(self.twin.data_collator)
        try:
            with quiet():
                self._pool = Pool(self._loader(evaluation=False, recorder=recorder), label_key=self._label_key)
        except Exception as error:  # the user's data or collator raised: that is what we came to see
            return failure_of(error), recorder
        return None, recorder

    def measure_step(self) -> tuple[ForwardFacts, LossFacts | None, GradientFacts | None]:
        batches = self.pool.take(2, seed=0)
        self.reset()
        with self._ready(0):
            model = self.twin.model
            observer = Observer(self._model_wrapped, self.change.all, detail=True, places=self._seen.modules.get)
            inputs: dict[str, Any] = {}
            watch = GraphWatch(model, self.change.all, detail=True)
            with contextlib.suppress(Exception):  # an optimizer that cannot be built is the optimizer stage's matter
                self._build_optimizer()
            with _capturing(model, inputs), observer.catching() as record:
                self._compute(batches[0], record, watch)
            if is_device_error(record.error) and not self._device_lost:
                self._continue_on_cpu()
                return device_failure_kept(record.failure, *self.measure_step())
            memory = self._memory(batches[0]) if is_out_of_memory(record.error) else None
            if record.failed_stage == Stage.GRADIENTS and record.loss is None and record.loss_tensor is not None:
                record.loss = float(record.loss_tensor.detach())
            fresh = self._fresh(model)
            probe = Probe(
                model=model,
                inputs=inputs or dict(batches[0]),
                other={k: v for k, v in batches[1].items() if k in inputs} if len(batches) > 1 and inputs else None,
                vocabulary=vocabulary_of(model),
                pad_id=getattr(self._tokenizer(), "pad_token_id", None),
                label_keys=tuple(dict.fromkeys([*self.twin.label_names, "labels", "label", "label_ids"])),
                met_rows=self._rows_to_come(),
                repairs=self.change.all,
            )
            gradients = gradient_facts(
                record, model, self._seen.modules.get, self.twin.args.max_grad_norm or None,
                self.twin.args.gradient_accumulation_steps,
            )  # fmt: skip
            if gradients is not None:
                gradients = graph_facts(gradients, watch, model, {"trainer": self.twin}, self._seen.modules.get)
            forward = replace(forward_facts(record, probe, self._seen.modules.get, fresh), memory=memory)
            forward = replace(forward, parameters=with_origins(
                forward.parameters, model, self._seen.frozen_at, self._changes
            ))
            loss = loss_facts(record, batches[0], self.label_of(batches[0]))
        self.reset()
        if loss is not None:
            with self._ready(0):
                change = self._padding_label_change(batches[0]) if loss.failure is None else None
                loss = further_losses(replace(loss, padding_label_change=change), gradients, self, batches)
            self.reset()
        if gradients is not None:
            with self._ready(0):
                with contextlib.suppress(Exception):  # as above
                    self._build_optimizer()
                gradients = further_steps(gradients, self, self.pool.take(POOLED, seed=0))
            self.reset()
        if record.failure is None:
            with self._ready(0):
                step = functools.partial(self._step_on, batches[-1])
                forward = replace(forward, parameters=stay_identical(forward.parameters, self.twin.model, step))
            self.reset()
        return forward, loss, gradients

    def _rows_to_come(self) -> dict[str, tuple[int, bool]]:
        """Other numbers of rows that training and evaluation will meet, and whether in training mode."""
        args, found = self.twin.args, {}
        if (rows := length(self.twin.train_dataset)) and not args.dataloader_drop_last:
            found["the last training batch"] = (rows % args.train_batch_size, True)
        if self.twin.eval_dataset is not None and (held := length(self._one_evaluation_set())):
            found["the first evaluation batch"] = (min(held, args.eval_batch_size), False)
            if not args.dataloader_drop_last:
                found["the last evaluation batch"] = (held % args.eval_batch_size, False)
        return found

    def _fresh(self, model: nn.Module) -> frozenset[str] | None:
        """Names of the parameters that no checkpoint held; None where none was loaded."""
        known = {n: self._seen.is_fresh(model, n) for n, _ in model.named_parameters()}
        if self._seen.trained:  # an earlier training of the script may have trained them
            return frozenset()
        return None if None in known.values() else frozenset(n for n, is_fresh in known.items() if is_fresh)

    def _step_on(self, batch: Mapping[str, Any]) -> None:
        """The gradients of a batch, with the repairs in force; what it raises passes."""
        with Observer(self._model_wrapped, self.change.all):
            self._compute(batch, StepRecord())

    def _memory(self, batch: Mapping[str, Any]) -> MemoryFacts:
        def update() -> Any:
            self._build_optimizer()
            self._update()
            return self.twin.optimizer

        facts = measure_memory(self.twin.model, batch, lambda rows: self._step_on(type_like(batch, dict(rows))), update)
        self.reset()
        return facts

    def _continue_on_cpu(self) -> None:
        """The device is lost to an error of its own: walk on with a copy of the model on the CPU."""
        twin = self.twin
        for name in _PREPARED:
            twin.model.__dict__.pop(name, None)
        twin.model.__dict__.update(self._own_forward)
        copied = on_cpu(twin.model, self._start)
        for old, new in zip(twin.model.modules(), copied.modules()):
            if old in self._seen.modules:
                self._seen.modules[new] = self._seen.modules[old]
        if twin.model in self._seen.loadings:
            self._seen.loadings[copied] = self._seen.loadings[twin.model]
        twin.model, twin.optimizer = copied, None
        twin.args.__dict__["_setup_devices"] = torch.device("cpu")
        self._device_lost, self._start, self._given_optimizer = True, ModelState(copied), None

    def measure_optimizer(self) -> OptimizerFacts:
        batch = self.pool.take(1, seed=0)[0]
        self.reset()
        with self._ready(0):
            self._build_optimizer()
            moved = False
            before = {n: p.detach().clone() for n, p in self.twin.model.named_parameters() if p.requires_grad}
            record = StepRecord()
            schedules = [s for s in (self.twin.lr_scheduler, self.trainer.lr_scheduler) if s is not None]
            counts = [getattr(s, "last_epoch", 0) for s in schedules]
            with Observer(self._model_wrapped, self.change.all).catching() as record:
                self._compute(batch, record)
                moved = any(getattr(s, "last_epoch", 0) > count for s, count in zip(schedules, counts))
                self._update()
            self.twin.lr_scheduler = self.trainer.lr_scheduler
            facts = optimizer_facts(self.twin, before, record.failure, user_built=self._given_optimizer is not None,
                                    planned=self.planned_updates(), schedule_first=moved,
                                    schedule_given=hf_setup.makes_schedule(self.trainer),
                                    rate_given=hf_setup.is_rate_written(self.trainer, self._seen))  # fmt: skip
            self._warmup_updates = max(facts.schedule, key=lambda point: point[1], default=(0, 1.0))[0]
        self.reset()
        return facts

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        self.reset()
        with self._ready(0):
            facts = hf_evaluation.measure(self.twin, self._one_evaluation_set(), batches, self.change.all)
        self.reset()
        return facts

    def train(self, *, steps: int, batches: int, seed: int, changes: Sequence[Repair] = (),
              seconds: float = 30.0, enough: float = 0.0) -> Run:  # fmt: skip
        chosen = self.pool.take(batches, seed=seed)
        self.reset()
        self.change.tried = list(changes)
        started, losses, failure = time.monotonic(), [], None
        at_end: dict[str, Any] = {}
        try:
            with self._ready(seed):
                self._build_optimizer()
                for step in range(steps):
                    observer = Observer(self._model_wrapped, self.change.all)
                    with observer.catching() as record:
                        self._compute(chosen[step % len(chosen)], record)
                        self._update(rate_share=self._warmed_up(step))
                    if record.failure is not None:
                        failure = record.failure
                        break
                    losses.append(record.loss if record.loss is not None else math.nan)
                    if not math.isfinite(losses[-1]):
                        losses += [math.nan] * (steps - step - 1)
                        break
                    if time.monotonic() - started > seconds or _is_lost(losses) or losses[-1] <= enough * losses[0]:
                        break
                at_end = self._at_end(chosen)
        finally:
            self.change.tried = []
            self.reset()
        return Run(
            losses=tuple(losses), rows=sum(rows_of(b) for b in chosen), failure=failure,
            seconds=time.monotonic() - started, **at_end,
        )  # fmt: skip

    def apply(self, repair: Repair) -> None:
        if repair.seam == Seam.TRAINER:
            self._apply_to_trainer(repair)
        self.change.kept.append(repair)
        if repair.seam in (Seam.TRAINER, Seam.BATCH):
            self._pool = None

    def put_back(self) -> None:
        # Structure first: values belong to the parameters the model had, not to those of a widened head.
        self._modules.put_back()
        self._objects.put_back()
        with contextlib.suppress(*[RuntimeError] if self._device_lost else []):  # nothing on it can be written any more
            self._given.put_back()
        if self._given_optimizer is not None:
            self._given_optimizer.put_back()
        if self._schedule is not None:
            self.trainer.lr_scheduler.__dict__.clear()
            self.trainer.lr_scheduler.__dict__.update(self._schedule)
        self._script.put_back()
        self._further.put_back()
        self._random.put_back()

    # How it is done

    @property
    def pool(self) -> Pool:
        """The first training batches, formed once."""
        if self._pool is None:
            loader = self._loader(evaluation=False)
            self._pool = Pool(loader, label_key=self._label_key)
        return self._pool

    def reset(self) -> None:
        """Back to the weights (of the repaired model) from which training would start."""
        self._start_modules.put_back()
        self._start.put_back()
        if self._given_optimizer is not None:
            self._given_optimizer.put_back()
        else:
            self.twin.optimizer = None
        model = self.twin.model
        for name in _PREPARED:
            model.__dict__.pop(name, None)
        model.__dict__.update(self._own_forward)

    def planned_updates(self) -> int | None:
        """How many updates the real training would make."""
        args, rows = self.trainer.args, length(self.trainer.train_dataset)
        if args.max_steps > 0:
            return int(args.max_steps)
        if rows is None:
            return None
        batches = rows / (args.train_batch_size * args.world_size)
        batches = math.floor(batches) if args.dataloader_drop_last else math.ceil(batches)
        return math.ceil(args.num_train_epochs * max(1, math.ceil(batches / args.gradient_accumulation_steps)))

    def _make_twin(self) -> Any:
        twin = copy.copy(self.trainer)
        twin.args = copy.copy(self.trainer.args)
        for name, value in {"dataloader_num_workers": 0, "dataloader_persistent_workers": False,
                            "dataloader_prefetch_factor": None}.items():  # fmt: skip
            object.__setattr__(twin.args, name, value)
        twin.state = copy.deepcopy(self.trainer.state)
        twin.control = copy.copy(self.trainer.control)
        twin.callback_handler = CallbackHandler([DefaultFlowCallback()], twin.model, twin.processing_class, None, None)
        twin.log = lambda *args, **kwargs: None
        twin.__dict__.pop("_eval_dataloaders", None)
        return twin

    @contextlib.contextmanager
    def _ready(self, seed: int) -> Iterator[None]:
        """The model prepared as training prepares it (devices, mixed precision, checkpointing), seeded."""
        twin = self.twin
        with quiet():
            twin.model_wrapped = twin.model
            lost = self._device_lost  # the accelerator would move the model to it
            self._model_wrapped = twin.model if lost else twin.accelerator.prepare_model(twin.model)
            twin.accelerator.gradient_state._set_sync_gradients(True)
            twin.current_gradient_accumulation_steps = 1
            twin.is_in_train = True
            self._checkpointing()
            seed_everything(seed + 1)
            yield

    def _checkpointing(self) -> None:
        args, model = self.twin.args, self.twin.model
        for name in ("activation_checkpointing", "gradient_checkpointing"):
            if getattr(args, name, False) and hasattr(model, f"{name}_enable"):
                getattr(model, f"{name}_enable")()
                break

    def _compute(self, batch: Mapping[str, Any], record: StepRecord, watch: GraphWatch | None = None) -> None:
        """Forward, loss and backward on one batch, as the Trainer does them."""
        self._model_wrapped.zero_grad()
        cuts = any(r.seam == Seam.CUT for r in self.change.all)
        with watch or (GraphWatch(self.twin.model, self.change.all) if cuts else contextlib.nullcontext()):
            loss = self.step_on(batch, [batch])
        record.loss = float(loss.detach().float().mean())

    def step_on(self, batch: Mapping[str, Any], window: Sequence[Mapping[str, Any]]) -> torch.Tensor:
        """Forward, loss and backward on one batch of a window that is accumulated; return the loss."""
        twin = self.twin
        given = self._mended_batch(batch)
        items = twin._get_num_items_in_batch([self._mended_batch(b) for b in window], twin.args.device)
        loss: torch.Tensor = twin.training_step(self._model_wrapped, type_like(batch, given), items)
        return loss

    def loss_of(self, batch: Mapping[str, Any]) -> float:
        """The loss of a batch as it stands, without gradients, always with the same random numbers."""
        seed_everything(1)
        twin, given = self.twin, self._mended_batch(batch)
        with torch.no_grad(), Observer(self._model_wrapped, self.change.all):
            loss = twin.compute_loss(self._model_wrapped, twin._prepare_inputs(type_like(batch, given)))
        return float(loss.detach().float().mean())

    def _padding_label_change(self, batch: Mapping[str, Any]) -> float | None:
        key, (_, pad_id, eos_id) = self._label_key(batch), special_ids(self.twin.model, self._tokenizer())
        with contextlib.suppress(Exception):  # a loss that cannot be had twice shows nothing
            if key is None or (other := other_padding_labels(batch, key, pad_id, eos_id)) is None:
                return None
            before = self.loss_of(batch)
            return abs(self.loss_of(type_like(batch, {**batch, key: other})) - before) / (abs(before) + 1e-12)
        return None

    def second_step(self, batch: Mapping[str, Any]) -> Failure | None:
        """What a step raises after another one."""
        with Observer(self._model_wrapped, self.change.all).catching() as record:
            self._compute(batch, record)
        return record.failure

    def label_of(self, batch: Mapping[str, Any]) -> Any:
        """The labels of a batch, or None."""
        return batch.get(self._label_key(batch) or "")

    def _mended_batch(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(batch)
        for repair in self.change.all:
            if repair.seam == Seam.BATCH:
                given = dict(repair.change(self._call(Seam.BATCH, given)).given)
        return given

    @property
    def wrapped(self) -> Any:
        """The model as training calls it."""
        return self._model_wrapped

    @property
    def repairs(self) -> list[Repair]:
        """Those in force."""
        return self.change.all

    def _update(self, rate_share: float = 1.0) -> None:
        twin = self.twin
        if twin.args.max_grad_norm and twin.args.max_grad_norm > 0:
            twin.accelerator.clip_grad_norm_(self._model_wrapped.parameters(), twin.args.max_grad_norm)
        rates = [g["lr"] for g in twin.optimizer.param_groups]
        set_rates(twin.optimizer, [rate * rate_share for rate in rates])
        twin.optimizer.step()
        set_rates(twin.optimizer, rates)

    def _warmed_up(self, step: int) -> float:
        """The share of the peak rate at a step of a short run: it rises over its first steps where training warms up."""
        rise = min(self._warmup_updates, WARMED_UP)
        return min(1.0, (step + 1) / (rise + 1))

    def _build_optimizer(self) -> None:
        twin = self.twin
        twin.lr_scheduler = self.trainer.lr_scheduler
        if twin.optimizer is None:
            twin.create_optimizer()
        optimizer = twin.optimizer
        for group in optimizer.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])
        with contextlib.suppress(Exception):  # a schedule that cannot be made is seen when it is run dry
            twin.lr_scheduler = stand_in_schedule(twin, self.planned_updates())
        for repair in self.change.all:
            if repair.seam == Seam.OPTIMIZER:
                repair.change(self._call(Seam.OPTIMIZER, {"optimizer": optimizer, "model": twin.model}))

    def _call(self, seam: Seam, given: Mapping[str, Any]) -> Call:
        return Call(seam=seam, given=given, tensors=tensors, scope=self._scope)

    def _apply_to_trainer(self, repair: Repair) -> None:
        twin = self.twin
        roles = {"model": "model", "train_dataset": "train_dataset", "eval_dataset": "eval_dataset",
                 "collator": "data_collator", "metrics": "compute_metrics", "tokenizer": "processing_class",
                 "label_names": "label_names"}  # fmt: skip
        given = {role: getattr(twin, name) for role, name in roles.items()}
        given["tokenizer"] = self._tokenizer()
        given["arguments"] = twin.args
        given["ignored_arguments"] = self._ignored_arguments
        with quiet():
            changed = repair.change(self._call(Seam.TRAINER, given))
        for role, name in roles.items():
            if changed[role] is not given[role]:
                setattr(twin, name, changed[role])
        self._ignored_arguments = changed["ignored_arguments"]
        for method, names in self._ignored_arguments.items():
            if method != "log":  # the twin logs nothing
                setattr(twin, method, hf_setup.without_arguments(twin, method, names))
        twin._signature_columns = None
        self._start = ModelState(twin.model)
        self._start_modules = AttributeState(twin.model.modules())

    def _loader(self, *, evaluation: bool, recorder: RecordingCollator | None = None) -> Any:
        twin = self.twin
        kept = twin.data_collator
        placement = twin.accelerator.device_placement
        twin.accelerator.device_placement = False  # facts are taken before a batch goes to a device
        twin.data_collator = recorder or kept
        try:
            return twin.get_eval_dataloader(self._one_evaluation_set()) if evaluation else twin.get_train_dataloader()
        finally:
            twin.data_collator = kept
            twin.accelerator.device_placement = placement

    def _first_batch(self, *, evaluation: bool) -> tuple[Mapping[str, Any] | None, Failure | None, RecordingCollator]:
        recorder = RecordingCollator(self.twin.data_collator)
        seed_everything(1)
        try:
            with quiet():
                return next(iter(self._loader(evaluation=evaluation, recorder=recorder))), None, recorder
        except StopIteration:
            return None, Failure(type="StopIteration", message="the loader gave no batch", where=None), recorder
        except Exception as error:  # the user's data or collator raised: that is what we came to see
            return None, failure_of(error), recorder

    def _one_evaluation_set(self) -> Any:
        data = self.twin.eval_dataset
        if not _is_dataset_dict(data):
            return data
        # A part of the training set is often evaluated on too, to compare.
        held = [part for name, part in data.items() if "train" not in str(name)]
        return next(iter(held or data.values()), None)

    def _accepts(self) -> tuple[tuple[str, ...], bool, tuple[str, ...]]:
        parameters = inspect.signature(self.twin.model.forward).parameters.values()
        named = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
        required = tuple(p.name for p in parameters if p.name in named and p.default is p.empty)
        return named, any(p.kind == p.VAR_KEYWORD for p in parameters), required

    def _label_key(self, batch: Mapping[str, Any]) -> str | None:
        return next((n for n in [*self.twin.label_names, "labels", "label"] if n in batch), None)

    def _tokenizer(self) -> Any:
        """The Trainer's tokenizer, its collator's, or one in the script's scope."""
        inner = getattr(self.twin.data_collator, "tokenizer", None)
        for value in (self.twin.processing_class, inner, *self._scope.values()):
            if isinstance(value, transformers.PreTrainedTokenizerBase):
                return value
        return None

    def _tokenizer_facts(self) -> TokenizerFacts | None:
        tokenizer = self._tokenizer()
        if tokenizer is None:
            return None
        named = [n.expression for n in objects_in_scope(self._scope) if n.value is tokenizer]
        longest = tokenizer.model_max_length
        return TokenizerFacts(
            expression=named[0] if named else "",
            size=len(tokenizer),
            pad_id=tokenizer.pad_token_id,
            eos_id=tokenizer.eos_token_id,
            unk_id=tokenizer.unk_token_id,
            longest_input=longest if longest < 10**9 else None,
            name=type(tokenizer).__name__,
        )

    def _decoded_items(self) -> tuple[str, ...]:
        tokenizer, data = self._tokenizer(), self.twin.train_dataset
        if tokenizer is None or length(data) in (None, 0):
            return ()
        with contextlib.suppress(Exception):  # decoding is an illustration; a set without tokens has none
            rows = [as_mapping(data[i]).get(_TOKENS) for i in range(min(3, len(data)))]
            return tuple(tokenizer.decode(r) for r in rows if r is not None)
        return ()

    def _lookalikes(self, rows: int | None) -> Iterator[Lookalike]:
        """Objects in scope with the rows of a passed set that hold a required input which the set lacks."""
        passed = {"train": self.twin.train_dataset, "evaluation": self._one_evaluation_set()}
        for split, data in passed.items():
            columns = getattr(data, "column_names", None)
            if columns is None or (count := length(data)) is None:
                continue
            for named in objects_in_scope(self._scope):
                other = getattr(named.value, "column_names", None)
                if isinstance(other, list) and named.value is not data and length(named.value) == count:
                    yield Lookalike(expression=named.expression, columns=tuple(other), split=split)

    def _shuffles(self) -> bool | None:
        if length(self.twin.train_dataset) is None:
            return False
        with contextlib.suppress(Exception), quiet():  # a loader that cannot be built is the batch stage's matter
            loader = self._loader(evaluation=False)
            # accelerate's loader has a SequentialSampler of its own; the one in force is the batch sampler's.
            sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)
            kind = type(sampler).__name__ if sampler is not None else ""
            return None if not kind else "Sequential" not in kind
        return None

    def _at_end(self, batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Losses and predictions of the batches in evaluation mode, and what a constant prediction loses there."""
        self.twin.model.eval()
        losses: list[float] = []
        targets: list[list[Targets]] = []
        answers: list[tuple[list[int], list[int]]] = []
        for batch in batches:
            given = dict(batch)
            for repair in self.change.all:
                if repair.seam == Seam.BATCH:
                    given = dict(repair.change(self._call(Seam.BATCH, given)).given)
            inputs = type_like(batch, given)
            observer = Observer(self._model_wrapped, self.change.all)
            with TargetsSeen() as seen, observer.catching() as record, torch.no_grad():
                losses.append(float(self.twin.compute_loss(self._model_wrapped, self.twin._prepare_inputs(inputs))))
            if record.failure is not None:
                return {}
            targets.append(seen.calls)
            answers.append(predicted_classes(record.scores, given.get(self._label_key(given) or "")))
        constant, floor = constant_and_floor(targets, losses)
        complete = all(p for p, _ in answers)
        return {
            "evaluated": sum(losses) / len(losses),
            "constant": constant,
            "floor": floor,
            "predictions": tuple(c for p, _ in answers for c in p) if complete else (),
            "labels": tuple(c for _, t in answers for c in t) if complete else (),
        }


def _collates_equal_rows(recorder: RecordingCollator) -> bool | None:
    """Whether the collator that failed on a batch takes each of its rows when it is repeated."""
    if not recorder.items:
        return None
    try:
        for item in recorder.items:
            recorder.collator([copy.copy(item), copy.copy(item)])
    except Exception:  # then it is not the rows' differences that it fails on
        return False
    return True


def predicted_classes(scores: Any, labels: Any) -> tuple[list[int], list[int]]:
    """Predicted and true classes, where scores are (N, C) and labels (N)."""
    if not tensors.is_tensor(labels) or labels.dim() != 1 or labels.is_floating_point():
        return [], []
    if scores is None or scores.dim() != 2 or len(scores) != len(labels) or scores.shape[1] < 2:
        return [], []
    return scores.argmax(-1).tolist(), [int(x) for x in labels.tolist()]


def _is_lost(losses: Sequence[float]) -> bool:
    """Whether a run has gone astray for good: more of it would cost time and tell nothing."""
    return len(losses) >= LOST_STEPS and min(losses[-LOST_STEPS // 2 :]) > LOST_FACTOR * losses[0] > 0


def type_like(batch: Any, given: dict[str, Any]) -> Any:
    """The changed values in a container of the batch's own type."""
    if type(batch) is dict:
        return given
    other = copy.copy(batch)
    for key, value in given.items():
        other[key] = value
    return other


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


def vocabulary_of(model: nn.Module) -> int | None:
    """Rows of the model's input embedding."""
    with contextlib.suppress(Exception):  # models without one raise several kinds of errors
        return int(model.get_input_embeddings().weight.shape[0])  # type: ignore[operator]
    return None


def _is_dataset_dict(data: Any) -> bool:
    return isinstance(data, dict)


def versions() -> dict[str, str]:
    """The versions that matter for a Trainer script."""
    import platform

    import accelerate

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "accelerate": accelerate.__version__,
        "numpy": np.__version__,
    }
