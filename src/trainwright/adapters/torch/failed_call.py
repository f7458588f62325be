"""A call of a model, a loss or a loader outside of training that raised: made again, and measured as in a step."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch import nn

from trainwright.adapters.torch.batches import RecordingCollator, batch_facts
from trainwright.adapters.torch.called_model import CalledModel, left_as_it_was
from trainwright.adapters.torch.collation import collates_equal_rows, collator_facts, forms_without, stacked_lengths
from trainwright.adapters.torch.loaders import loader_places
from trainwright.adapters.torch.loss import loss_facts
from trainwright.adapters.torch.step_facts import forward_facts
from trainwright.adapters.torch.words import TORCH
from trainwright.core import Facts, Failure
from trainwright.frameworks.label_names import ARGUMENTS, find_label
from trainwright.seams.failures.blame import failure_of, frames_of, passed_on
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.seams.listening.torch_patches import loader_of
from trainwright.seams.source.places import is_users
from trainwright.seams.torch.graph import leaves_behind
from trainwright.seams.torch.layers import module_facts
from trainwright.seams.torch.loss import LOSSES
from trainwright.seams.torch.observer import Observer
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages import BatchFacts, ForwardFacts, ModuleFacts, SetupFacts
from trainwright.tensors.items import reader_of
from trainwright.tensors.torch import objects as tensors

_MODULE_CALLS = {nn.Module._wrapped_call_impl.__code__, nn.Module._call_impl.__code__}
_LOSS_CALLS = {function.__code__: function for function in LOSSES if hasattr(function, "__code__")}
# Keras's layers are modules on its torch backend.
_KERAS = "keras."
# How many operations of a graph are searched for the layer that made the scores.
_MOST_OPERATIONS = 64


def failed_call(error: BaseException, seen: BuiltObjects) -> CallOutside | None:
    """The outermost call of a module, a loss function or a loader in an exception's traceback; None if there is none."""
    users: FrameType | None = None
    for frame in frames_of(error):
        held, code = frame.f_locals, frame.f_code
        if is_users(code.co_filename):
            users = frame
        elif code in _MODULE_CALLS and isinstance(module := held.get("self"), nn.Module):
            if type(module).__module__ == nn.modules.loss.__name__:
                return LossOutside(module, held["args"], held["kwargs"], seen=seen, scope=_scope(users))
            if any(kind.__module__.startswith(_KERAS) for kind in type(module).__mro__):
                return None  # its message is read as on the other backends
            return ModelOutside(module, held["args"], held["kwargs"], seen=seen)
        elif code in _LOSS_CALLS:
            given = {name: held[name] for name in code.co_varnames[: code.co_argcount] if name in held}
            return LossOutside(_LOSS_CALLS[code], (), given, seen=seen, scope=_scope(users))
        elif isinstance(loader := loader_of(held.get("self")), torch.utils.data.DataLoader):
            return _batch_of(loader, error, seen)
    return None


def _scope(frame: FrameType | None) -> dict[str, Any]:
    return {**frame.f_globals, **frame.f_locals} if frame is not None else {}


@dataclass
class ModelOutside:
    """A model that was called outside of training."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    seen: BuiltObjects = field(kw_only=True)

    def measure(self) -> tuple[Facts, ...]:
        """Call it again."""
        record = self._observed()
        view = self.view()
        label = find_label(view, ARGUMENTS)
        probe = CalledModel(model=self.model, inputs=view) if record.failure is not None else None
        forward = forward_facts(record, self.model, probe, None, self.seen.frozen_at)
        loss = loss_facts(record, view, view.get(label) if label else None)
        found = batch_facts(view, label, self.model, self.model, None), forward
        return (*found, loss) if loss is not None and record.loss_calls else found

    def _observed(self) -> StepRecord:
        observer = Observer(self.model, detail=True, trained_only=False, built=self.seen)
        with left_as_it_was(self.model), observer.catching() as record:
            passed_on(self.model, *self.args, **self.kwargs)
        return record

    def view(self) -> dict[str, Any]:
        """The inputs by the names of forward's parameters; "0", "1" for those without a name."""
        names = [p.name for p in _parameters(self.model) if p.kind is p.POSITIONAL_OR_KEYWORD]
        keys = [*names, *map(str, range(len(names), len(self.args)))]
        return {**dict(zip(keys, self.args)), **self.kwargs}

    def known(self, setup: SetupFacts) -> SetupFacts:
        """The setup facts with what is known of the model."""
        at = self.seen.modules.get(self.model)
        places = {**setup.places, **({"model": at} if at is not None else {})}
        return replace(setup, words=TORCH, places=places, model_class=type(self.model).__name__)


@dataclass
class LossOutside:
    """A loss that was called outside of training, as a module or as a function."""

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    seen: BuiltObjects = field(kw_only=True)
    scope: Mapping[str, Any] = field(kw_only=True)

    def measure(self) -> tuple[Facts, ...]:
        """Call it again; no facts if that is not seen as a loss of tensors."""
        module = self.function if isinstance(self.function, nn.Module) else nn.Identity()
        observer = Observer(module, detail=True, trained_only=False, built=self.seen)
        with observer.catching() as record:
            passed_on(self.function, *self.args, **self.kwargs)
        loss = loss_facts(record, {}) if record.loss_calls else None
        if loss is None:
            return ()
        # The scores that the script passed: the output of a model that ended without an error.
        scores = record.kept_losses[-1].scores
        forward = ForwardFacts(output=tensors.facts(scores), head=self._head(scores))
        return BatchFacts(), forward, loss

    def _head(self, scores: torch.Tensor) -> ModuleFacts | None:
        """The linear layer in the script's scope that made the scores last, found from their graph."""
        owners = {
            id(layer.weight): (name, layer)
            for model in self.scope.values()
            if isinstance(model, nn.Module)
            for name, layer in model.named_modules()
            if isinstance(layer, nn.Linear)
        }
        for parameter in leaves_behind([scores], _MOST_OPERATIONS):
            if id(parameter) in owners:
                return module_facts(*owners[id(parameter)], (), None, self.seen)
        return None

    def known(self, setup: SetupFacts) -> SetupFacts:
        """The setup facts in torch's words."""
        return replace(setup, words=TORCH)


@dataclass
class BatchOutside:
    """A batch that a loader could not form outside of training."""

    loader: Any
    recorder: RecordingCollator
    seen: BuiltObjects = field(kw_only=True)

    def measure(self) -> tuple[Facts, ...]:
        """Form it again."""
        facts = collator_facts(self.recorder)
        failure = self._failure()
        if failure is None:
            return (BatchFacts(rows=len(self.recorder.items), **facts),)
        batch = BatchFacts(
            failure=failure,
            equal_rows_collate=collates_equal_rows(self.recorder),
            forms_without=forms_without(self.recorder),
            stacked_lengths=stacked_lengths(self.recorder),
            **facts,
        )
        return (batch,)

    def _failure(self) -> Failure | None:
        try:
            self.recorder(list(self.recorder.items))
        except Exception as error:  # the user's collator raised, which is the finding
            return failure_of(error)
        return None

    def known(self, setup: SetupFacts) -> SetupFacts:
        """The setup facts with the lines of the loader."""
        return replace(setup, words=TORCH, places={**setup.places, **loader_places(self.loader, self.seen)})


CallOutside = ModelOutside | LossOutside | BatchOutside


def _batch_of(loader: Any, error: BaseException, seen: BuiltObjects) -> BatchOutside | None:
    """The batch that was being formed, if its rows are known: those in the traceback, or those of the first batch."""
    for frame in frames_of(error):
        rows = frame.f_locals.get("data")
        if frame.f_code.co_name == "fetch" and isinstance(rows, list) and rows:
            break
    else:
        rows = _first_rows(loader)
    if not rows:
        return None
    recorder = RecordingCollator(loader.collate_fn)
    recorder.items.extend(rows)
    return BatchOutside(loader, recorder, seen=seen)


def _first_rows(loader: Any) -> Sequence[Any]:
    """The rows of a first batch, read in this process; for a batch that a worker process could not form."""
    if not loader.num_workers or loader.batch_sampler is None:
        return ()
    try:
        return [passed_on(reader_of(loader.dataset), index) for index in next(iter(loader.batch_sampler), ())]
    except Exception:  # then it is a row that raised, and the batch was never formed
        return ()


def _parameters(model: nn.Module) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return []
