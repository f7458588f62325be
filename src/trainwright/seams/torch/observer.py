"""torch's seams: observes one training step, and applies repairs to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from trainwright.core import Call, Failure, Place, Repair, Seam, Stage
from trainwright.probes.losses import unreachable_share
from trainwright.seams.failures.blame import failure_of, frames_of, tolerated
from trainwright.seams.failures.repair_log import apply_repair
from trainwright.seams.listening.seen import BuiltObjects, seen
from trainwright.seams.source.places import user_place
from trainwright.seams.torch.all_pairs import is_paired, pairing_of
from trainwright.seams.torch.layers import is_users_own, measure_activation, module_facts
from trainwright.seams.torch.loss import (
    LOSSES,
    TERM,
    KeptLoss,
    as_wanted,
    calling_module,
    measure_call,
    parameters_of,
    shares_of_total,
)
from trainwright.seams.torch.modes import Leaving, original
from trainwright.seams.torch.step_record import StepRecord, scores_of
from trainwright.seams.torch.tape import Tape
from trainwright.seams.torch.terms import TermWatch
from trainwright.seams.torch.trace import FirstNonFinite
from trainwright.stages import ModuleFacts, Renormalised
from trainwright.tensors.torch import objects as tensors
from trainwright.tensors.torch.transforms import within_transform

_NORMALISERS = {
    torch.softmax: "softmax", F.softmax: "softmax", torch.Tensor.softmax: "softmax",
    torch.log_softmax: "log_softmax", F.log_softmax: "log_softmax", torch.Tensor.log_softmax: "log_softmax",
    torch.sigmoid: "sigmoid", F.sigmoid: "sigmoid", torch.Tensor.sigmoid: "sigmoid",
}  # fmt: skip
_ACTIVATIONS = {
    torch.relu: "ReLU", F.relu: "ReLU", torch.Tensor.relu: "ReLU", torch.Tensor.relu_: "ReLU", F.relu6: "ReLU6",
    torch.sigmoid: "Sigmoid", F.sigmoid: "Sigmoid", torch.Tensor.sigmoid: "Sigmoid",
    torch.tanh: "Tanh", F.tanh: "Tanh", torch.Tensor.tanh: "Tanh",
}  # fmt: skip
_CHANGEABLE = {**_NORMALISERS, **{func: kind.lower() for func, kind in _ACTIVATIONS.items()}}
_CHANGED_TO: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "identity": lambda x: x,
}


class Observer(Leaving):
    """Observes the inputs of the model and its loss functions, and changes them if repairs say so. Models may join.

    A torch function mode sees calls however they were imported, and only while it is active: nothing is patched, and
    nothing remains afterwards.

    Args:
        roots: the modules that training calls, if these are parts of the model; None: the model itself.
        tape: where the calls outside of the model's modules are noted.
        detail: record facts of every module and activation (one step); False: loss and changes only.
        trained_only: a root's calls without gradients are an evaluation during the step, and not recorded.
        keeps_losses: keep the tensors of every loss call, with gradients or without, and nothing else of it.
        built: what the script has built; None: all so far.
    """

    def __init__(
        self,
        model: nn.Module,
        repairs: Sequence[Repair] = (),
        *,
        roots: Sequence[nn.Module] | None = None,
        tape: Tape | None = None,
        detail: bool = False,
        trained_only: bool = True,
        keeps_losses: bool = False,
        built: BuiltObjects | None = None,
    ) -> None:
        super().__init__()
        self.record = StepRecord()
        self._model = model
        self.roots = list(roots) if roots is not None else [model]
        self._tape = tape
        self._trained_only, self._keeps_losses = trained_only, keeps_losses
        self._aside = False
        self.keeps_output = False  # whether what is called now answers for another loss than the recorded one
        self._detail = detail
        self._built = seen() if built is None else built
        self._loss_repairs = [r for r in repairs if r.seam == Seam.LOSS]
        self._forward_repairs = [r for r in repairs if r.seam == Seam.FORWARD]
        self._names = {id(m): n for n, m in model.named_modules()}
        self._stack: list[tuple[nn.Module, tuple[Any, ...]]] = []
        self._noted: set[str] = set()
        self._activation_repairs = [r for r in repairs if r.seam == Seam.ACTIVATION]
        self._pairing_repairs = [r for r in repairs if r.seam == Seam.PAIRING]
        self._normalised: dict[int, tuple[Any, Place | None]] = {}
        self._activated: dict[int, tuple[torch.Tensor, str, Place | None, str, Place | None]] = {}
        self._finite = FirstNonFinite()
        self._terms = TermWatch()
        self._hooks: list[Any] = []
        self._stage = Stage.FORWARD
        self._loss_count = 0

    def __enter__(self) -> Observer:
        all_modules = self._detail or bool(self._activation_repairs)
        watched = self._model.modules() if all_modules else self.roots
        self._watch(watched)
        super().__enter__()
        return self

    def _watch(self, modules: Iterable[nn.Module]) -> None:
        for module in modules:
            self._hooks.append(module.register_forward_pre_hook(self._before, with_kwargs=True))
            self._hooks.append(module.register_forward_hook(self._after, with_kwargs=True))

    def join(self, model: nn.Module, root: nn.Module) -> None:
        """A further module is called, with a model that holds it and all before."""
        self._model, self._names = model, {id(m): n for n, m in model.named_modules()}
        self.roots.append(root)
        self._watch(root.modules())

    def forget(self) -> None:
        """Let go of the step's tensors, and of the graph that hangs on them."""
        record = self.record
        record.output = record.scores = record.loss_tensor = record.targets = None
        record.kept_losses, record.broadcasts = [], []
        self._normalised, self._activated = {}, {}

    def is_left_by(self, error: BaseException) -> bool:
        """Whether the step stands where an exception has left it: it may stand where an earlier one did, which was caught."""
        if self._stack:
            return any(frame.f_locals.get("self") is self._stack[-1][0] for frame in frames_of(error))
        last = self.record.loss_calls[-1].failure if self.record.loss_calls else None
        return last is None or last.is_same(failure_of(error))  # what the step has kept knows no line outside of it

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        self.record.non_finite_from = self._finite.origin
        for hook in self._hooks:
            hook.remove()

    @contextmanager
    def catching(self) -> Iterator[StepRecord]:
        """Record what the pipeline raises, and the stage it was at, instead of letting it propagate."""
        try:
            with self:
                yield self.record
        except Exception as error:  # the script's: it is what was to be seen
            self.note_failure(error)

    def note_failure(self, error: BaseException) -> None:
        """Record what the step raised, and the stage it was at."""
        record = self.record
        record.error, record.failure, record.failed_stage = error, failure_of(error), self._stage
        if record.loss_calls and record.loss_calls[-1].failure:
            record.failed_stage = Stage.LOSS
        elif self._stack and self._stage == Stage.FORWARD:
            module, inputs = self._stack[-1]
            record.failed_module = self._facts(module, inputs, None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func, kwargs = original(func), kwargs or {}
        if self.is_passive or within_transform():
            return func(*args, **kwargs)
        tape, given, caller = self._tape if not self._stack else None, args, sys._getframe(1)
        if func is torch.Tensor.backward:
            if tape is not None:
                tape.end(args, kwargs)
            self._stage = Stage.GRADIENTS
            with tolerated():  # the script's backward goes on
                gradient = args[1] if len(args) > 1 else kwargs.get("gradient")
                self._note_backward(args[0], gradient, user_place(caller))
        if func in LOSSES:
            result = self._loss(func, args, kwargs)
            if self._detail:
                kept = self.record.kept_losses
                self._terms.see(func, result, caller, kept[-1].function if kept else LOSSES[func])
        else:
            if (self._detail or self._pairing_repairs) and is_paired(func, args):
                args = (*self._pair(args), *args[2:])
            result = self._activate(func, args, kwargs) if func in _CHANGEABLE else func(*args, **kwargs)
            if func in _NORMALISERS and isinstance(result, torch.Tensor):
                self._normalised[id(result)] = (result, user_place(caller))
            if self._detail:
                module = self._names.get(id(self._stack[-1][0]), "") if self._stack else ""
                self._finite.see(func, (*args, *kwargs.values()), result, caller, module)
                self._terms.see(func, result, caller)
                if func in _ACTIVATIONS and isinstance(result, torch.Tensor) and self._functional(func):
                    self._keep_activation(f"{module}.{_ACTIVATIONS[func].lower()}".lstrip("."), func, args, result)
        if tape is not None:
            tape.note(func, given, kwargs, result)
        return result

    def _note_backward(self, total: torch.Tensor, gradient: torch.Tensor | None, at: Place | None) -> None:
        """Record the tensor that is minimized: with a gradient for each element, the sum weighted by them."""
        if total.numel() != 1 and gradient is not None:
            total = (total * gradient).sum()
        if total.numel() == 1 and not total.is_complex():
            self.record.loss_tensor = total
            self.record.minimised.append(float(total.detach()))
            self.record.loss_at = self.record.loss_at or at
            self.record.loss_shares = shares_of_total(total, self.record.kept_losses)
            self.record.loss_terms = self._terms.terms_of(total)

    def _pair(self, args: Any) -> tuple[Any, Any]:
        """Both sides of an operation that makes all pairs of two tensors' rows, changed if repairs say so."""
        pairing = pairing_of(args[0], args[1], user_place(sys._getframe(2))) if self._detail else None
        if pairing is not None:
            self.record.broadcasts.append(pairing)
        call = Call(seam=Seam.PAIRING, given={"left": args[0], "right": args[1]}, tensors=tensors)
        for repair in self._pairing_repairs:
            call = apply_repair(repair, call)
        return call["left"], call["right"]

    def _activate(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An activation's result, changed if repairs say so; records which tensor it created."""
        if not self._detail and not self._activation_repairs:
            return func(*args, **kwargs)
        name, module, at, where = _CHANGEABLE[func], "", user_place(sys._getframe(2)), None
        if self._stack:
            inner = self._stack[-1][0]
            own = type(inner).__name__.lower() == name.replace("_", "")
            module = self._names.get(id(inner), "")
            module = module if own else f"{module}.{name}".lstrip(".")
            callers = self._stack[:-1] if own else self._stack
            where = at if callers and is_users_own(callers[-1][0]) else None
            at = self._built.modules.get(inner) if own else at
        values = args[0] if args else kwargs.get("input")
        call = Call(
            seam=Seam.ACTIVATION,
            given={"function": name, "values": values, "module": module, "where": where},
            tensors=tensors,
        )
        if self._detail and not self._stack and name in ("softmax", "log_softmax"):
            self._note_renormalised(name, values, at)
        for repair in self._activation_repairs:
            call = apply_repair(repair, call)
        if call["function"] != name:
            result = _CHANGED_TO[call["function"]](call["values"])
        else:
            rest = {k: v for k, v in kwargs.items() if k != "input"}
            result = func(call["values"], *args[1:], **rest)
        if self._detail and isinstance(result, torch.Tensor) and result.device.type != "meta":
            made = (result, call["function"], at, module, where)
            self._activated[result.untyped_storage().data_ptr()] = made
        return result

    def _note_renormalised(self, name: str, values: Any, at: Place | None) -> None:
        """Record a softmax of a softmax's output, on the way to the loss."""
        if not isinstance(values, torch.Tensor) or not values.requires_grad or not values.numel():
            return
        made = self._activated.get(values.untyped_storage().data_ptr())
        if made is not None and made[1] == "softmax" and made[0].numel() == values.numel():
            self.record.renormalised.append(
                Renormalised(function=name, shape=tuple(values.shape), where=at, softmax_at=made[4] or made[2])
            )

    def _functional(self, func: Any) -> bool:
        """Whether user code called an activation, rather than the activation's own module."""
        return not (self._stack and type(self._stack[-1][0]).__name__ == _ACTIVATIONS[func])

    def _keep_activation(self, name: str, func: Any, args: Any, result: torch.Tensor) -> None:
        self.record.modules.append(
            ModuleFacts(
                name=name,
                kind=_ACTIVATIONS[func],
                where=user_place(sys._getframe(2)),
                inputs=(tensors.facts(args[0]),),
                output=tensors.facts(result),
                **measure_activation(_ACTIVATIONS[func], result),
            )
        )

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        if within_transform():
            return None
        if self._is_root(module):
            self._aside = self._trained_only and not torch.is_grad_enabled()
        if self._is_root(module) and not self._aside:
            self._stage = Stage.FORWARD
            self.record.is_training = module.training
            if not self.record.modes:
                self.record.modes = {n: m.training for n, m in self._model.named_modules()}
            for repair in self._forward_repairs:
                call = Call(seam=Seam.FORWARD, given={"model": module, "inputs": kwargs or args}, tensors=tensors)
                changed = apply_repair(repair, call)["inputs"]
                args, kwargs = (args, changed) if kwargs else (changed, kwargs)
        self._stack.append((module, (*args, *kwargs.values())))
        return args, kwargs

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if within_transform():
            return
        if self._stack and self._stack[-1][0] is module:
            self._stack.pop()
        if self._detail and not self._aside:
            name = self._names.get(id(module), "")
            if name not in self._noted:
                self._noted.add(name)
                self.record.modules.append(self._facts(module, (*args, *kwargs.values()), output))
        if self._is_root(module) and self._aside:
            self._aside = False
        elif self._is_root(module) and not self.keeps_output:
            self._stage = Stage.LOSS
            self.record.output = output
            self.record.scores = scores_of(output)
        if self._tape is not None and not self._stack:
            self._tape.note(module, args, kwargs, output)

    def _facts(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> ModuleFacts:
        return module_facts(self._names.get(id(module), ""), module, inputs, output, self._built)

    def _is_root(self, module: nn.Module) -> bool:
        """Whether training called this module, rather than another of the model's modules."""
        inner = len(self.roots) > 1 and bool(self._stack)
        return not inner and any(module is root for root in self.roots)

    def _loss(self, func: Any, args: Any, kwargs: Any) -> Any:
        names = parameters_of(func)
        options = {**dict(zip(names, args)), **kwargs}
        given = {"logits": options.pop(names[0], None), "targets": options.pop(names[1], None)}
        number, self._loss_count = self._loss_count, self._loss_count + 1
        roles = {**given, "function": LOSSES[func], "number": number}
        call = Call(seam=Seam.LOSS, given={**options, **roles}, tensors=tensors)
        for repair in self._loss_repairs:
            call = apply_repair(repair, call)
        options = dict(call.given)
        logits, targets, name = options.pop("logits"), options.pop("targets"), options.pop("function")
        del options["number"]
        trained, shown, scale = (options.pop(role, given) for role, given in TERM.items())
        changed = func
        if name != LOSSES[func]:
            changed = getattr(F, name)
            options = {k: v for k, v in options.items() if k in parameters_of(changed)}
        at = user_place(sys._getframe(2))
        module = calling_module(sys._getframe(2))
        made_at = None if module is None else self._built.modules.get(module)
        kept = KeptLoss(function=name, scores=logits, targets=targets, options=options, at=at, made_at=made_at)
        failure = None
        try:
            kept.value = changed(logits, targets, **options)
            return as_wanted(kept.value, trained=trained, shown=shown, scale=scale)
        except Exception as error:
            failure = failure_of(error)
            raise
        finally:
            if isinstance(logits, torch.Tensor) and isinstance(targets, torch.Tensor):
                self._keep_loss(kept, failure, at)

    def _keep_loss(self, kept: KeptLoss, failure: Failure | None, at: Place | None) -> None:
        if self._keeps_losses:
            self.record.kept_losses.append(kept)
            return
        if self._trained_only and not torch.is_grad_enabled():
            return
        logits = kept.scores
        self.record.targets = kept.targets.detach()
        if self.record.scores is None:
            self.record.scores = logits
        if not self._detail:
            return
        seen = self._normalised.get(id(logits)) or self._source_of_log(logits)
        active = self._activated.get(logits.untyped_storage().data_ptr()) if logits.numel() else None
        self.record.kept_losses.append(kept)
        self.record.loss_calls.append(
            measure_call(
                kept,
                at=at,
                failure=failure,
                softmax_at=seen[1] if seen else None,
                activation=active[1] if active else "",
                unreachable_share=unreachable_share(active[1], tensors.to_numpy(kept.targets)) if active else None,
                activation_at=active[2] if active else None,
                activation_module=active[3] if active else "",
                activation_called_at=active[4] if active else None,
            )
        )

    def _source_of_log(self, logits: torch.Tensor) -> tuple[Any, Place | None] | None:
        """The last softmax whose logarithm was passed to the loss."""
        if not logits.numel() or not bool((logits.detach() <= 0).all()):
            return None
        with torch.no_grad():
            fitting = (
                kept
                for kept in reversed(self._normalised.values())
                if kept[0].shape == logits.shape and torch.allclose(kept[0].float(), logits.float().exp(), atol=1e-6)
            )
            return next(fitting, None)
