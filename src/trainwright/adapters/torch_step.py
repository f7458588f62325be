"""One observed training step of a torch model, and probes of its forward pass, as facts of three stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.core.finding import Place
from trainwright.core.stage import Stage
from trainwright.seams.torch import StepRecord, scores_of
from trainwright.stages.forward import ForwardFacts, ParameterFacts
from trainwright.stages.gradients import GradientFacts, GradientOf
from trainwright.stages.loss import LossCall, LossFacts
from trainwright.tensors import torch as tensors

_BATCH_STATISTICS = nn.modules.batchnorm._BatchNorm
_DROPOUT = nn.modules.dropout._DropoutNd
_CLASSIFYING = ("cross_entropy", "nll_loss")


@dataclass(kw_only=True)
class Probe:
    """The model and what it was really called with, so that it can be called again with something changed."""

    model: nn.Module
    inputs: dict[str, Any]
    """Keyword arguments, or "0", "1" for positional ones."""
    other: dict[str, Any] | None = None
    """Another batch."""
    vocabulary: int | None = None
    pad_id: int | None = None

    @torch.no_grad()
    def scores(self, inputs: Mapping[str, Any]) -> torch.Tensor | None:
        """The model's scores in evaluation mode; its mode is put back."""
        modes = [(m, m.training) for m in self.model.modules()]
        self.model.eval()
        try:
            positional = [v for k, v in inputs.items() if k.isdigit()]
            device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
            named = {k: _to(v, device) for k, v in inputs.items() if not k.isdigit()}
            found = scores_of(self.model(*[_to(v, device) for v in positional], **named))
            return found.detach().float() if found is not None else None
        finally:
            for module, training in modes:
                module.training = training


def _to(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def rows_of(inputs: Mapping[str, Any]) -> int:
    """The number of rows: the size of the first tensor's first axis."""
    return next((len(v) for v in inputs.values() if isinstance(v, torch.Tensor) and v.dim()), 0)


def take_rows(inputs: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """These rows of every tensor that has as many rows as the first."""
    count = rows_of(inputs)
    chosen = torch.as_tensor(list(rows))
    return {
        k: v[chosen.to(v.device)] if isinstance(v, torch.Tensor) and v.dim() and len(v) == count else v
        for k, v in inputs.items()
    }


def _difference(left: torch.Tensor, right: torch.Tensor) -> float:
    """Largest difference relative to the scale of the values."""
    scale = float(left.std(correction=0)) + float(left.abs().mean()) + 1e-12
    return float((left - right).abs().max()) / scale


def forward_facts(record: StepRecord, probe: Probe, places: Callable[[nn.Module], Place | None],
                  fresh: frozenset[str] | None) -> ForwardFacts:  # fmt: skip
    """What the observed step and the probes say of the forward pass.

    Args:
        fresh: names of the parameters that the checkpoint did not hold; None: unknown.
    """
    failed = record.failure if record.failed_stage == Stage.FORWARD else None
    scores = record.scores
    seen = scores.detach().float() if scores is not None else None
    unit = bool(((seen >= 0) & (seen <= 1)).all()) if seen is not None and seen.numel() else False
    classes = seen.shape[-1] if seen is not None and seen.dim() > 1 else 0
    linear = [m for m in record.modules if m.kind == "Linear"]
    stochastic = {
        n: m for n, m in probe.model.named_modules() if isinstance(m, (_DROPOUT, _BATCH_STATISTICS))
    }  # fmt: skip
    probes = {} if failed or record.failed_stage == Stage.LOSS and seen is None else run_probes(probe)
    return ForwardFacts(
        failure=failed,
        failed_module=record.failed_module,
        modules=tuple(record.modules),
        parameters=tuple(parameter_facts(probe.model, fresh)),
        output=tensors.facts(scores) if scores is not None else None,
        output_in_unit_range=unit,
        output_rows_sum_to_one=unit and classes > 1 and bool((seen.sum(-1) - 1).abs().max() < 1e-3),  # type: ignore[union-attr]
        head=linear[-1] if linear else None,
        training=record.training,
        stochastic=bool(stochastic),
        eval_modules=tuple(n for n in stochastic if not record.modes.get(n, True) and _is_trained(probe.model, n)),
        causal=is_causal(probe.model),
        **probes,
    )


def _is_trained(model: nn.Module, name: str) -> bool:
    """Whether the block around a module has trainable parameters."""
    parent = model.get_submodule(name.rpartition(".")[0])
    return any(p.requires_grad for p in parent.parameters())


def is_causal(model: nn.Module) -> bool:
    """Whether the model says of itself that it predicts the next token."""
    config = getattr(model, "config", None)
    kind = type(model).__name__
    if getattr(config, "is_encoder_decoder", False):
        return False
    return bool(getattr(config, "is_decoder", False)) or kind.endswith(("ForCausalLM", "LMHeadModel"))


def run_probes(probe: Probe) -> dict[str, Any]:
    """Facts of the forward pass that need further calls of the model; a probe that cannot be made is left out."""
    found: dict[str, Any] = {}
    try:
        base = probe.scores(probe.inputs)
    except Exception:  # evaluation mode fails where training mode did not: the evaluation stage will show it
        return found
    if base is None or not bool(torch.isfinite(base).all()):
        return found
    rows = rows_of(probe.inputs)
    for measure in (_other_inputs, _other_rows, _leaking_rows, _future_leak, _padding):
        try:
            found |= measure(probe, base, rows)
        except Exception as error:
            if measure is _other_rows:
                from trainwright.seams.place import failure_of

                found |= {"fails_at_rows": rows - 1, "other_rows_failure": failure_of(error)}
    return found


def _other_inputs(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    if probe.other is None:
        return {}
    other = probe.scores(probe.other)
    if other is None or other.shape[1:] != base.shape[1:]:
        return {}
    count = min(len(base), len(other))
    return {"same_for_other_inputs": _difference(base[:count], other[:count]) < 1e-6}


def _other_rows(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    if rows > 2:
        probe.scores(take_rows(probe.inputs, range(rows - 1)))
    return {}


def _leaking_rows(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    if rows < 2 or len(base) != rows:
        return {}
    changed = probe.scores(take_rows(probe.inputs, [0] * rows))
    return {"leaking_rows": _difference(base[0], changed[0])} if changed is not None else {}


def _future_leak(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    tokens = probe.inputs.get("input_ids", probe.inputs.get("0"))
    if not isinstance(tokens, torch.Tensor) or tokens.is_floating_point() or tokens.dim() != 2:
        return {}
    if base.dim() != 3 or base.shape[1] != tokens.shape[1] or tokens.shape[1] < 4 or not probe.vocabulary:
        return {}
    half = tokens.shape[1] // 2
    altered = tokens.clone()
    altered[:, half:] = (altered[:, half:] + 1) % probe.vocabulary
    key = "input_ids" if "input_ids" in probe.inputs else "0"
    changed = probe.scores({**probe.inputs, key: altered})
    return {"future_leak": _difference(base[:, :half], changed[:, :half])} if changed is not None else {}


def _padding(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    tokens, mask = probe.inputs.get("input_ids"), probe.inputs.get("attention_mask")
    if not isinstance(tokens, torch.Tensor) or not isinstance(mask, torch.Tensor) or mask.dim() != 2:
        return {}
    if not bool((mask[:, 0] == 1).all()):  # padded on the left: appending would change positions
        return {}
    extra = 4
    pad = torch.full((rows, extra), probe.pad_id or 0, dtype=tokens.dtype, device=tokens.device)
    padded = {"input_ids": torch.cat([tokens, pad], 1), "attention_mask": torch.cat([mask, torch.zeros_like(pad)], 1)}
    if "token_type_ids" in probe.inputs:
        padded["token_type_ids"] = torch.cat([probe.inputs["token_type_ids"], torch.zeros_like(pad)], 1)
    changed = probe.scores(padded)
    if changed is None:
        return {}
    if base.dim() == 3 and base.shape[1] == tokens.shape[1]:
        real = mask.bool().to(base.device)
        return {"padding_changes": _difference(base[real], changed[:, : base.shape[1]][real])}
    return {"padding_changes": _difference(base, changed)} if changed.shape == base.shape else {}


def parameter_facts(model: nn.Module, fresh: frozenset[str] | None) -> list[ParameterFacts]:
    """Every parameter as it stands."""
    owners = {id(p): (n, m) for n, m in model.named_modules() for p in m.parameters(recurse=False)}
    found = []
    for name, parameter in model.named_parameters():
        facts = tensors.facts(parameter)
        owner, module = owners[id(parameter)]
        matrix = parameter.detach()
        found.append(
            ParameterFacts(
                name=name,
                shape=facts.shape,
                trainable=parameter.requires_grad,
                dtype=facts.dtype,
                mean=facts.mean or 0.0,
                deviation=facts.deviation or 0.0,
                non_finite=facts.non_finite,
                identical_rows=matrix.dim() > 1 and len(matrix) > 1 and bool((matrix == matrix[:1]).all()),
                default_deviation=_default_deviation(module, name),
                freshly_initialised=None if fresh is None else name in fresh,
                module=owner,
                module_kind=type(module).__name__,
            )
        )
    return found


def _default_deviation(module: nn.Module, name: str) -> float | None:
    """torch's own: uniform in +-1/sqrt(fan_in) for linear and convolution layers, N(0, 1) for embeddings."""
    if not name.endswith("weight"):
        return None
    if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)):
        fan_in = nn.init._calculate_fan_in_and_fan_out(module.weight)[0]
        return 1 / math.sqrt(3 * fan_in) if fan_in else None
    return 1.0 if isinstance(module, nn.Embedding) else None


def loss_facts(record: StepRecord, model: nn.Module, rows: int) -> LossFacts | None:
    """What the observed step says of the loss; None if it was not reached."""
    if record.failed_stage == Stage.FORWARD:
        return None
    call = record.loss_calls[-1] if record.loss_calls else None
    classes = None
    if call and call.function in _CLASSIFYING and len(call.inputs.shape) > 1:
        classes = call.inputs.shape[1]
    chance = math.log(classes) if classes and classes > 1 else None
    losses, labels = per_row(record, call)
    return LossFacts(
        failure=record.failure if record.failed_stage == Stage.LOSS else None,
        function=call.function if call else "",
        call=call,
        calls=tuple(record.loss_calls),
        value=record.loss,
        scalar=record.loss_tensor is None or record.loss_tensor.numel() == 1,
        requires_grad=record.loss_tensor is None or record.loss_tensor.requires_grad,
        classes=classes,
        chance_nats=chance,
        expected=_expected(call, chance),
        at=(call.at if call else None) or record.loss_at,
        row_losses=losses,
        row_labels=labels,
        own_model_loss=bool(call and call.at is None) or (call is None and record.loss_at is None),
    )


def _expected(call: LossCall | None, chance: float | None) -> float | None:
    """The loss of a model that knows nothing: uniform scores, or zero for centred targets."""
    if chance is not None:
        return chance
    if call and call.function.startswith("binary_cross_entropy"):
        return math.log(2)
    if call and call.function == "mse_loss" and call.targets.deviation is not None:
        return call.targets.deviation**2 + (call.targets.mean or 0.0) ** 2
    return None


def per_row(record: StepRecord, call: LossCall | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Loss and label of each row, for scores (N, C) with class targets (N)."""
    return (), ()


def gradient_facts(record: StepRecord, model: nn.Module, places: Callable[[nn.Module], Place | None],
                   clip_at: float | None, accumulation: int) -> GradientFacts | None:  # fmt: skip
    """What reached each parameter; None if backward was not reached."""
    if record.failed_stage in (Stage.FORWARD, Stage.LOSS):
        return None
    owners = {id(p): (n, m) for n, m in model.named_modules() for p in m.parameters(recurse=False)}
    found = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        owner, module = owners[id(parameter)]
        grad = parameter.grad
        if grad is not None and grad.is_sparse:
            grad = grad.coalesce().values()
        found.append(
            GradientOf(
                name=name,
                module=owner,
                shape=tuple(parameter.shape),
                norm=None if grad is None else float(grad.detach().float().norm()),
                weight_norm=float(parameter.detach().float().norm()),
                non_finite=0 if grad is None else int((~torch.isfinite(grad)).sum()),
                where=places(module),
            )
        )
    norms = [g.norm for g in found if g.norm is not None]
    return GradientFacts(
        failure=record.failure if record.failed_stage == Stage.GRADIENTS else None,
        gradients=tuple(found),
        norm=float(np.sqrt(np.sum(np.square(norms)))) if norms else None,
        clip_at=clip_at,
        cuts=tuple(record.cuts),
        loss_finite=record.loss is None or math.isfinite(record.loss),
        loss_requires_grad=record.loss_tensor is None or record.loss_tensor.requires_grad,
        forward_parameters=tuple(_called_parameters(record, model)),
        accumulation=accumulation,
    )


def _called_parameters(record: StepRecord, model: nn.Module) -> list[str]:
    called = set(record.called)
    return [n for n, p in model.named_parameters() if p.requires_grad and n.rpartition(".")[0] in called]


