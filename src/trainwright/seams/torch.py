"""torch's seams: one training step watched from outside, and weights that can be put back."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from trainwright.core.finding import Failure, Place
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.stage import Stage
from trainwright.seams.place import failure_of, is_users, user_place
from trainwright.stages.forward import ModuleFacts
from trainwright.stages.gradients import CutOff
from trainwright.stages.loss import LossCall
from trainwright.tensors import torch as tensors

_LOSSES: dict[Callable[..., Any], str] = {
    getattr(F, name): name
    for name in (
        "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss",
        "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss",
        "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
        "multilabel_soft_margin_loss", "soft_margin_loss", "cosine_embedding_loss", "triplet_margin_loss",
        "ctc_loss",
    )
}  # fmt: skip
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
_CUTS = {
    torch.Tensor.detach: "detach()", torch.Tensor.data.__get__: ".data", torch.Tensor.item: "item()",
    torch.Tensor.numpy: "numpy()", torch.Tensor.tolist: "tolist()", torch.argmax: "argmax", torch.round: "round",
    torch.Tensor.argmax: "argmax", torch.Tensor.round: "round", torch.Tensor.long: "long()",
    torch.Tensor.int: "int()", torch.as_tensor: "as_tensor", torch.tensor: "tensor",
}  # fmt: skip
RECTIFIERS = ("ReLU", "ReLU6")
SQUASHERS = {"Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0), "Softmax": (0.0, 1.0)}
# Within this distance of its end a sigmoid's slope is under 0.01 (s(1-s)): hardly any gradient passes.
SATURATED_WITHIN = 0.01


@dataclass(kw_only=True)
class StepRecord:
    """What passed the seams during one step."""

    failure: Failure | None = None
    failed_stage: Stage | None = None
    error: BaseException | None = None
    failed_module: ModuleFacts | None = None
    modules: list[ModuleFacts] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    loss_calls: list[LossCall] = field(default_factory=list)
    output: Any = None
    """The model's whole answer."""
    scores: torch.Tensor | None = None
    """The scores: the answer's logits, else what the last loss call was given."""
    loss: float | None = None
    loss_tensor: torch.Tensor | None = None
    loss_at: Place | None = None
    cuts: list[CutOff] = field(default_factory=list)
    training: bool = True
    modes: dict[str, bool] = field(default_factory=dict)
    random_calls: int = 0


class Observer(TorchFunctionMode):
    """Watches, and where repairs say so changes, what the model and its loss functions are given.

    A torch function mode sees calls however they were imported, and only while it is active: nothing is
    patched, and nothing remains afterwards.

    Args:
        detail: keep numbers of every module and activation (one step); False: loss and changes only.
    """

    def __init__(
        self,
        model: nn.Module,
        repairs: Sequence[Repair] = (),
        *,
        detail: bool = False,
        places: Callable[[nn.Module], Place | None] = lambda module: None,
    ) -> None:
        super().__init__()
        self.record = StepRecord()
        self._model = model
        self._detail = detail
        self._places = places
        self._loss_repairs = [r for r in repairs if r.seam == Seam.LOSS]
        self._forward_repairs = [r for r in repairs if r.seam == Seam.FORWARD]
        self._names = {id(m): n for n, m in model.named_modules()}
        self._stack: list[tuple[nn.Module, tuple[Any, ...]]] = []
        self._normalised: dict[int, tuple[Any, Place | None]] = {}
        self._hooks: list[Any] = []
        self._stage = Stage.FORWARD

    def __enter__(self) -> Observer:
        watched = self._model.modules() if self._detail else [self._model]
        for module in watched:
            self._hooks.append(module.register_forward_pre_hook(self._before, with_kwargs=True))
            self._hooks.append(module.register_forward_hook(self._after, with_kwargs=True))
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        for hook in self._hooks:
            hook.remove()

    @contextmanager
    def catching(self) -> Iterator[StepRecord]:
        """Record what the pipeline raises, with the stage it was at, instead of letting it pass."""
        try:
            with self:
                yield self.record
        except Exception as error:
            record = self.record
            record.error, record.failure = error, failure_of(error)
            record.failed_stage = self._stage
            if record.loss_calls and record.loss_calls[-1].failure:
                record.failed_stage = Stage.LOSS
            elif self._stack and self._stage == Stage.FORWARD:
                module, inputs = self._stack[-1]
                record.failed_module = self._module_facts(module, inputs, None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _LOSSES:
            return self._loss(func, args, kwargs)
        if func is torch.Tensor.backward:
            self._stage = Stage.GRADIENTS
            if args[0].numel() == 1:
                self.record.loss_tensor = args[0]
                self.record.loss_at = self.record.loss_at or user_place(sys._getframe(1))
        result = func(*args, **kwargs)
        if func in _NORMALISERS and isinstance(result, torch.Tensor):
            self._normalised[id(result)] = (result, user_place(sys._getframe(1)))
        if self._detail:
            if func in _ACTIVATIONS and isinstance(result, torch.Tensor) and self._functional(func):
                name = self._names.get(id(self._stack[-1][0]), "") if self._stack else ""
                self._keep_activation(f"{name}.{_ACTIVATIONS[func].lower()}".lstrip("."), func, args, result)
            if func in _CUTS and args and isinstance(args[0], torch.Tensor) and args[0].requires_grad:
                frame = sys._getframe(1)
                if is_users(frame.f_code.co_filename):
                    self.record.cuts.append(CutOff(operation=_CUTS[func], where=user_place(frame)))
        return result

    def _functional(self, func: Any) -> bool:
        """Whether an activation was called by user code, not by the activation's own module."""
        return not (self._stack and type(self._stack[-1][0]).__name__ == _ACTIVATIONS[func])

    def _keep_activation(self, name: str, func: Any, args: Any, result: torch.Tensor) -> None:
        self.record.modules.append(
            ModuleFacts(
                name=name,
                kind=_ACTIVATIONS[func],
                where=user_place(sys._getframe(2)),
                inputs=(tensors.facts(args[0]),),
                output=tensors.facts(result),
                **_activation_shares(_ACTIVATIONS[func], result),
            )
        )

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        if module is self._model:
            self.record.training = module.training
            if not self.record.modes:
                self.record.modes = {n: m.training for n, m in module.named_modules()}
            for repair in self._forward_repairs:
                call = Call(seam=Seam.FORWARD, given={"model": module, "inputs": kwargs or args}, tensors=tensors)
                changed = repair.change(call)["inputs"]
                args, kwargs = (args, changed) if kwargs else (changed, kwargs)
        self._stack.append((module, (*args, *kwargs.values())))
        return args, kwargs

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._stack and self._stack[-1][0] is module:
            self._stack.pop()
        if self._detail:
            name = self._names.get(id(module), "")
            if name not in self.record.called:
                self.record.called.append(name)
                self.record.modules.append(self._module_facts(module, (*args, *kwargs.values()), output))
        if module is self._model:
            self._stage = Stage.LOSS
            self.record.output = output
            self.record.scores = scores_of(output)

    def _module_facts(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> ModuleFacts:
        result = first_tensor(output)
        kind = type(module).__name__
        return ModuleFacts(
            name=self._names.get(id(module), ""),
            kind=kind,
            where=self._places(module),
            inputs=tuple(tensors.facts(t) for t in inputs if isinstance(t, torch.Tensor))[:4],
            output=tensors.facts(result) if result is not None else None,
            training=module.training,
            leaf=next(module.children(), None) is None,
            sizes=declared_sizes(module),
            dropout=module.p if isinstance(module, nn.modules.dropout._DropoutNd) else None,
            **(_activation_shares(kind, result) if result is not None else {}),
        )

    def _loss(self, func: Any, args: Any, kwargs: Any) -> Any:
        named = dict(kwargs)
        given = {"logits": named.pop("input", args[0] if args else None)}
        given["targets"] = named.pop("target", args[1] if len(args) > 1 else None)
        rest = args[2:] if "input" not in kwargs else ()
        call = Call(seam=Seam.LOSS, given={**given, "function": _LOSSES[func], **named}, tensors=tensors)
        for repair in self._loss_repairs:
            call = repair.change(call)
        given = dict(call.given)
        logits, targets, name = given.pop("logits"), given.pop("targets"), given.pop("function")
        changed = getattr(F, name) if name != _LOSSES[func] else func
        at = user_place(sys._getframe(2))
        failure, value = None, None
        try:
            value = changed(logits, targets, *(rest if changed is func else ()), **given)
            return value
        except Exception as error:
            failure = failure_of(error)
            raise
        finally:
            if isinstance(logits, torch.Tensor) and isinstance(targets, torch.Tensor):
                self._keep_loss(name, logits, targets, given, value, failure, at)

    def _keep_loss(self, name: str, logits: torch.Tensor, targets: torch.Tensor, options: Mapping[str, Any],
                   value: Any, failure: Failure | None, at: Place | None) -> None:  # fmt: skip
        seen = self._normalised.get(id(logits))
        if self.record.scores is None or name == "cross_entropy":
            self.record.scores = self.record.scores if self.record.scores is not None else logits
        if not self._detail:
            return
        scores = logits.detach().float()
        live = targets.detach()
        live = live[live != -100] if not live.is_floating_point() else live
        distinct = torch.unique(live[:100_000] if live.dim() == 1 else live.reshape(-1)[:100_000])
        axis = 1 if scores.dim() > 1 else 0
        unit = bool(((scores >= 0) & (scores <= 1)).all()) if scores.numel() else False
        sums = scores.sum(dim=axis) if scores.dim() > 1 and scores.shape[1] > 1 else None
        self.record.loss_calls.append(
            LossCall(
                function=name,
                inputs=tensors.facts(logits),
                targets=tensors.facts(targets),
                at=at,
                options={
                    **{k: v for k, v in options.items() if isinstance(v, (int, float, str)) and v is not None},
                    "has_weight": int(options.get("weight") is not None),
                },
                value=float(value.detach().float().mean()) if isinstance(value, torch.Tensor) else None,
                failure=failure,
                rows_sum_to_one=unit and sums is not None and bool((sums - 1).abs().max() < 1e-3),
                in_unit_range=unit,
                largest_target=int(live.max()) if live.numel() and bool(torch.isfinite(live.max())) else None,
                smallest_target=int(live.min()) if live.numel() and bool(torch.isfinite(live.min())) else None,
                target_values=tuple(float(x) for x in distinct) if distinct.numel() <= 32 else (),
                targets_above_one_hot=live.dim() > 1 and live.shape == targets.shape
                and bool((targets.detach().float().sum(dim=-1) > 1.001).any()),
                softmax_at=seen[1] if seen and seen[0] is logits else None,
            )
        )  # fmt: skip


def _activation_shares(kind: str, result: torch.Tensor) -> dict[str, float]:
    with torch.no_grad():
        values = result.detach()
        if kind in RECTIFIERS and values.dim() > 1:
            rows = values.reshape(-1, values.shape[-1]) if values.dim() != 4 else values.transpose(1, 3).reshape(
                -1, values.shape[1]
            )
            return {"dead_share": float((rows <= 0).all(dim=0).float().mean())}
        if kind in SQUASHERS:
            low, high = SQUASHERS[kind]
            near = (values < low + SATURATED_WITHIN) | (values > high - SATURATED_WITHIN)
            return {"saturated_share": float(near.float().mean())}
    return {}


def declared_sizes(module: nn.Module) -> tuple[int, ...]:
    """(in, out) of a layer, (rows, width) of an embedding; empty for others."""
    for pair in (("in_features", "out_features"), ("in_channels", "out_channels"), ("num_embeddings", "embedding_dim"),
                 ("input_size", "hidden_size")):  # fmt: skip
        if all(isinstance(getattr(module, name, None), int) for name in pair):
            return tuple(getattr(module, name) for name in pair)
    return ()


def first_tensor(value: Any) -> torch.Tensor | None:
    """The first tensor in an answer: itself, or of a mapping, sequence or model output."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return next((t for v in value if (t := first_tensor(v)) is not None), None)
    return None


def scores_of(output: Any) -> torch.Tensor | None:
    """The scores in a model's answer: its logits, else its first tensor that is not a single number."""
    if isinstance(output, Mapping):
        if isinstance(output.get("logits"), torch.Tensor):
            return output["logits"]
        output = [v for k, v in output.items() if k != "loss"]
    if isinstance(output, torch.Tensor):
        return output if output.dim() else None
    if isinstance(output, (list, tuple)):
        return next((v for v in output if isinstance(v, torch.Tensor) and v.dim()), None)
    return None


class ModelState:
    """The values of a model's parameters and buffers, which need a gradient, and the gradients themselves.

    Values of tensors on an accelerator are kept in host memory.
    """

    def __init__(self, model: nn.Module) -> None:
        seen = [*model.parameters(), *model.buffers()]
        self._values = [(t, t.detach().to("cpu", copy=True)) for t in seen]
        self._needs = [(p, p.requires_grad) for p in model.parameters()]
        self._gradients = [(p, None if p.grad is None else p.grad.detach().clone()) for p in model.parameters()]
        self._training = [(m, m.training) for m in model.modules()]

    @torch.no_grad()
    def put_back(self) -> None:
        """Set values, gradients and modes to what they were, in place."""
        for tensor, value in self._values:
            tensor.copy_(value)
        for parameter, needed in self._needs:
            parameter.requires_grad_(needed)
        for parameter, gradient in self._gradients:
            parameter.grad = None if gradient is None else gradient.clone()
        for module, training in self._training:
            module.training = training


class OptimizerState:
    """An optimizer's groups and the state it keeps of each parameter."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._groups = [dict(g, params=list(g["params"])) for g in optimizer.param_groups]
        self._state = {p: {k: _copied(v) for k, v in s.items()} for p, s in optimizer.state.items()}

    def put_back(self) -> None:
        """Set groups and state to what they were."""
        groups = self._optimizer.param_groups
        del groups[len(self._groups) :]
        for group, kept in zip(groups, self._groups):
            group.clear()
            group.update(dict(kept, params=list(kept["params"])))
        self._optimizer.state.clear()
        for parameter, state in self._state.items():
            self._optimizer.state[parameter] = {k: _copied(v) for k, v in state.items()}


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def row_losses(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Cross-entropy in nats of each row of (N, C) scores; NaN where the label is outside the scores."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    fits = (labels >= 0) & (labels < scores.shape[1])
    safe = np.where(fits, labels, 0)
    return np.where(fits, -logs[np.arange(len(labels)), safe], math.nan)
