"""The Hugging Face Trainer, walked on a copy of itself so that nothing done here reaches the user's."""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn
from transformers.trainer_callback import CallbackHandler, DefaultFlowCallback

from trainwright.adapters import hf_evaluation, hf_setup
from trainwright.adapters.base import Change, Run
from trainwright.adapters.batches import Pool, RecordingCollator, token_facts
from trainwright.adapters.data import as_mapping, length, objects_in_scope, read_split
from trainwright.adapters.torch_optimizer import optimizer_facts
from trainwright.adapters.torch_step import (
    Probe,
    forward_facts,
    gradient_facts,
    loss_facts,
    rows_of,
)
from trainwright.core.finding import Failure
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.stage import Stage
from trainwright.seams.intercept import Seen, quiet
from trainwright.seams.place import failure_of
from trainwright.seams.snapshot import AttributeState, RandomState, loose_generators, seed_everything
from trainwright.seams.torch import ModelState, Observer, OptimizerState, StepRecord
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import (
    DatasetFacts,
    Lookalike,
    TokenizerFacts,
    measure_split,
    overlap,
)
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.setup import SetupFacts
from trainwright.tensors import torch as tensors

_TOKENS = "input_ids"
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
        parts = [trainer.train_dataset, trainer.eval_dataset, trainer.data_collator, *self._scope.values()]
        self._random = RandomState(loose_generators(parts))
        self._modules = AttributeState(trainer.model.modules())
        self._objects = AttributeState(
            [trainer, trainer.args, trainer.accelerator, trainer.accelerator.gradient_state, trainer.state,
             trainer.train_dataset, trainer.eval_dataset, trainer.data_collator, getattr(trainer.model, "config", None)]
        )  # fmt: skip
        self._given = ModelState(trainer.model)
        given_optimizer = trainer.optimizer
        self._given_optimizer = OptimizerState(given_optimizer) if given_optimizer is not None else None
        self._schedule = copy.copy(trainer.lr_scheduler.__dict__) if trainer.lr_scheduler is not None else None
        model_attributes = trainer.model.__dict__
        self._own_forward = {n: model_attributes[n] for n in _PREPARED if n in model_attributes}
        self.twin = self._make_twin()
        self._start = self._given
        self._pool: Pool | None = None

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
            overrides=tuple(hf_setup.overridden_methods(trainer)),
            model_class=type(model).__name__,
            loads_checkpoint=model in self._seen.loadings,
            parameters=sum(n for n, _ in counts),
            trainable_parameters=sum(n for n, needed in counts if needed),
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
        train = measure_split(read_split("train", twin.train_dataset), names)
        evaluation = None
        if (data := self._one_evaluation_set()) is not None:
            evaluation = measure_split(read_split("evaluation", data), names)
        return DatasetFacts(
            train=train,
            evaluation=evaluation,
            accepts=self._accepts()[0],
            lookalikes=tuple(self._lookalikes(train.rows)),
            tokenizer=self._tokenizer_facts(),
            decoded=self._decoded_items(),
            shuffles=self._shuffles(),
            drops_last=twin.args.dataloader_drop_last,
            batch_size=twin.args.train_batch_size,
            overlap=overlap(train, evaluation),
        )

    def measure_batch(self) -> BatchFacts:
        self._pool = None
        names, takes_any, required = self._accepts()
        facts: dict[str, Any] = {"accepts": names, "accepts_any": takes_any, "required": required}
        collator = self.twin.data_collator
        facts["collator"] = getattr(collator, "__name__", type(collator).__name__)
        batch, failure, recorder = self._first_batch(evaluation=False)
        if recorder.items:
            items = [as_mapping(i) for i in recorder.items]
            facts["item_columns"] = tuple(items[0])
            facts["item_lengths"] = {
                k: tuple(len(i[k]) for i in items) for k in items[0]
                if all(hasattr(i.get(k), "__len__") and not isinstance(i[k], str) for i in items)
            }  # fmt: skip
        columns = getattr(self.twin.train_dataset, "column_names", None) or []
        if self.twin.args.remove_unused_columns:
            facts["dropped_columns"] = tuple(c for c in columns if c not in (*names, "label", "label_ids"))
        if failure is not None or batch is None:
            return BatchFacts(failure=failure, equal_rows_collate=_collates_equal_rows(recorder), **facts)
        held, _, _ = self._first_batch(evaluation=True) if self._one_evaluation_set() is not None else (None,) * 3
        return BatchFacts(
            rows=rows_of(batch),
            tensors={k: tensors.facts(v) for k, v in batch.items() if tensors.is_tensor(v)},
            others={k: type(v).__name__ for k, v in batch.items() if not tensors.is_tensor(v)},
            label_key=self._label_key(batch),
            evaluation_tensors={k: tensors.facts(v) for k, v in (held or {}).items() if tensors.is_tensor(v)},
            **token_facts(batch, self._label_key(batch), self.twin.model, self._tokenizer()),
            **facts,
        )

    def measure_step(self) -> tuple[ForwardFacts, LossFacts | None, GradientFacts | None]:
        batches = self.pool.take(2, seed=0)
        self.reset()
        with self._ready(0):
            model = self.twin.model
            observer = Observer(self._model_wrapped, self.change.all, detail=True, places=self._seen.modules.get)
            inputs: dict[str, Any] = {}
            with _capturing(model, inputs), observer.catching() as record:
                self._compute(batches[0], record)
            if record.failed_stage == Stage.GRADIENTS and record.loss is None and record.loss_tensor is not None:
                record.loss = float(record.loss_tensor.detach())
            fresh = self._seen.loadings[model].fresh if model in self._seen.loadings else None
            probe = Probe(
                model=model,
                inputs=inputs or dict(batches[0]),
                other={k: v for k, v in batches[1].items() if k in inputs} if len(batches) > 1 and inputs else None,
                vocabulary=vocabulary_of(model),
                pad_id=getattr(self._tokenizer(), "pad_token_id", None),
            )
            forward = forward_facts(record, probe, self._seen.modules.get, fresh)
            loss = loss_facts(record, model, rows_of(batches[0]))
            gradients = gradient_facts(
                record, model, self._seen.modules.get, self.twin.args.max_grad_norm or None,
                self.twin.args.gradient_accumulation_steps,
            )  # fmt: skip
        self.reset()
        return forward, loss, gradients

    def measure_optimizer(self) -> OptimizerFacts:
        batch = self.pool.take(1, seed=0)[0]
        self.reset()
        with self._ready(0):
            self._build_optimizer()
            before = {n: p.detach().clone() for n, p in self.twin.model.named_parameters() if p.requires_grad}
            record = StepRecord()
            with Observer(self._model_wrapped, self.change.all).catching() as record:
                self._compute(batch, record)
                self._update()
            facts = optimizer_facts(self.twin, before, record.failure, user_built=self._given_optimizer is not None,
                                    planned=self.planned_updates())  # fmt: skip
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
        predictions: tuple[int, ...] = ()
        labels: tuple[int, ...] = ()
        try:
            with self._ready(seed):
                self._build_optimizer()
                for step in range(steps):
                    observer = Observer(self._model_wrapped, self.change.all)
                    with observer.catching() as record:
                        self._compute(chosen[step % len(chosen)], record)
                        self._update()
                    if record.failure is not None:
                        failure = record.failure
                        break
                    losses.append(record.loss if record.loss is not None else math.nan)
                    if not math.isfinite(losses[-1]):
                        losses += [math.nan] * (steps - step - 1)
                        break
                    if time.monotonic() - started > seconds or losses[-1] <= enough * losses[0]:
                        break
                predictions, labels = self._predict(chosen)
        finally:
            self.change.tried = []
            self.reset()
        return Run(
            losses=tuple(losses), rows=sum(rows_of(b) for b in chosen), failure=failure, predictions=predictions,
            labels=labels, seconds=time.monotonic() - started,
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
        self._given.put_back()
        if self._given_optimizer is not None:
            self._given_optimizer.put_back()
        if self._schedule is not None:
            self.trainer.lr_scheduler.__dict__.clear()
            self.trainer.lr_scheduler.__dict__.update(self._schedule)
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
            self._model_wrapped = twin.accelerator.prepare_model(twin.model)
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

    def _compute(self, batch: Mapping[str, Any], record: StepRecord) -> None:
        """Forward, loss and backward on one batch, as the Trainer does them."""
        twin = self.twin
        given = dict(batch)
        for repair in self.change.all:
            if repair.seam == Seam.BATCH:
                given = dict(repair.change(self._call(Seam.BATCH, given)).given)
        self._model_wrapped.zero_grad()
        items = twin._get_num_items_in_batch([given], twin.args.device)
        loss = twin.training_step(self._model_wrapped, type_like(batch, given), items)
        record.loss = float(loss.detach().float().mean())

    def _update(self) -> None:
        twin = self.twin
        if twin.args.max_grad_norm and twin.args.max_grad_norm > 0:
            twin.accelerator.clip_grad_norm_(self._model_wrapped.parameters(), twin.args.max_grad_norm)
        twin.optimizer.step()

    def _build_optimizer(self) -> None:
        twin = self.twin
        twin.lr_scheduler = self.trainer.lr_scheduler
        if twin.optimizer is None:
            twin.create_optimizer()
        optimizer = twin.optimizer
        for group in optimizer.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])
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
        with quiet():
            changed = repair.change(self._call(Seam.TRAINER, given))
        for role, name in roles.items():
            if changed[role] is not given[role]:
                setattr(twin, name, changed[role])
        twin._signature_columns = None
        self._start = ModelState(twin.model)

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
        return next(iter(data.values()), None) if type(data) is dict or _is_dataset_dict(data) else data

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
            sampler = getattr(self._loader(evaluation=False), "sampler", None)
            kind = type(sampler).__name__ if sampler is not None else ""
            return None if not kind else "Sequential" not in kind
        return None

    def _predict(self, batches: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Predicted and true classes of the batches' rows, where scores are (N, C) and labels (N)."""
        predicted: list[int] = []
        true: list[int] = []
        for batch in batches:
            key = self._label_key(batch)
            if key is None or not tensors.is_tensor(batch[key]) or batch[key].dim() != 1:
                return (), ()
            observer = Observer(self._model_wrapped, [])
            self.twin.model.eval()
            with observer.catching() as record, torch.no_grad():
                self.twin.compute_loss(self._model_wrapped, self.twin._prepare_inputs(type_like(batch, dict(batch))))
            scores = record.scores
            if scores is None or scores.dim() != 2 or len(scores) != len(batch[key]) or scores.shape[1] < 2:
                return (), ()
            predicted += scores.argmax(-1).tolist()
            true += [int(x) for x in batch[key].tolist()]
        return tuple(predicted), tuple(true)


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
