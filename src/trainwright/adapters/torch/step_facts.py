"""One observed training step of a torch model and probes of its forward pass, as facts of three stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import nn

from trainwright.adapters.torch.called_model import CalledModel
from trainwright.adapters.torch.forward_probes import rows_that_work, run_probes
from trainwright.adapters.torch.token_probes import predicts_next_token
from trainwright.core import Place, Stage
from trainwright.probes.gradients import total_norm
from trainwright.seams.devices.memory_owners import is_out_of_memory
from trainwright.seams.source.written import configured_labels
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages import ForwardFacts, GradientFacts, GradientOf, ParameterFacts
from trainwright.tensors.torch import objects as tensors

_BATCH_STATISTICS = nn.modules.batchnorm._BatchNorm
_DROPOUT = nn.modules.dropout._DropoutNd
# A larger matrix is not multiplied by itself to find out how it was initialized.
_MOST_ORTHOGONAL = 1024


def forward_facts(
    record: StepRecord,
    model: nn.Module,
    probe: CalledModel | None,
    fresh: frozenset[str] | None,
    frozen_at: Callable[[nn.Parameter], Place | None],
) -> ForwardFacts:
    """The facts of the forward pass from the observed step and the probes.

    Args:
        probe: calls the model again; None if it is not called as one model.
        fresh: names of the parameters that the checkpoint did not contain; None: unknown.
        frozen_at: the line that froze a parameter.
    """
    failed = record.failure if record.failed_stage == Stage.FORWARD else None
    scores = record.scores
    linear = [m for m in record.modules if m.kind == "Linear"]
    stochastic = {n: m for n, m in model.named_modules() if isinstance(m, (_DROPOUT, _BATCH_STATISTICS))}
    unanswered = failed or (record.failed_stage == Stage.LOSS and scores is None)
    probes = run_probes(probe) if probe is not None and not unanswered else {}
    # A step over several micro-batches compares each one's outputs with its own targets.
    targets = [kept.targets for kept in record.kept_losses] or [record.targets]
    next_token = probe is not None and any(predicts_next_token(t, probe.inputs, probe.label_keys) for t in targets)
    return ForwardFacts(
        failure=failed,
        failed_module=record.failed_module,
        modules=tuple(record.modules),
        parameters=tuple(parameter_facts(model, fresh, frozen_at)),
        output=tensors.facts(scores) if scores is not None else None,
        head=linear[-1] if linear else None,
        configured_labels=configured_labels(model),
        training=record.is_training,
        eval_modules=tuple(_inactive(record, model, stochastic)),
        non_finite_from=record.non_finite_from,
        works_at_rows=rows_that_work(probe) if probe and failed and not is_out_of_memory(record.error) else None,
        predicts_next_token=next_token,
        causal=next_token or is_causal(model),
        **probes,
    )


def _inactive(record: StepRecord, model: nn.Module, stochastic: dict[str, nn.Module]) -> Iterator[str]:
    """Active dropout, and batch statistics never updated, that are in evaluation mode inside trained blocks."""
    called = {m.name: m.training for m in record.modules}
    for name, module in stochastic.items():
        if called.get(name, record.modes.get(name, True)) or not _is_trained(model, name):
            continue
        if isinstance(module, _BATCH_STATISTICS):
            mean, variance = module.running_mean, module.running_var
            if mean is None or variance is None or bool((mean != 0).any()) or bool((variance != 1).any()):
                continue  # a checkpoint's statistics, frozen on purpose
        elif not module.p:
            continue
        yield name


def _is_trained(model: nn.Module, name: str) -> bool:
    """Whether the block around a module has trainable parameters."""
    parent = model.get_submodule(name.rpartition(".")[0])
    return any(p.requires_grad for p in parent.parameters())


def is_causal(model: nn.Module) -> bool:
    """Whether the model declares that it predicts the next token."""
    config = getattr(model, "config", None)
    kind = type(model).__name__
    if getattr(config, "is_encoder_decoder", False):
        return False
    return bool(getattr(config, "is_decoder", False)) or kind.endswith(("ForCausalLM", "LMHeadModel"))


def parameter_facts(
    model: nn.Module, fresh: frozenset[str] | None, frozen_at: Callable[[nn.Parameter], Place | None]
) -> list[ParameterFacts]:
    """Facts about every parameter that has values, as it stands; arguments as of `forward_facts`."""
    spread = getattr(getattr(model, "config", None), "initializer_range", None)
    # If an embedding and the output layer share a weight, the last owner is the output layer.
    owners = {id(p): (n, m) for n, m in model.named_modules() for p in m.parameters(recurse=False)}
    found = []
    for name, parameter in model.named_parameters():
        if parameter.is_meta:  # it has no values
            continue
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
                initial_deviation=float(spread) if spread and name.endswith("weight") and matrix.dim() > 1 else None,
                frozen_at=None if parameter.requires_grad else frozen_at(parameter),
                orthogonal=_is_orthogonal(matrix),
                freshly_initialised=None if fresh is None else name in fresh,
                module=owner,
                module_kind=type(module).__name__,
            )
        )
    return found


@torch.no_grad()
def _is_orthogonal(matrix: torch.Tensor) -> bool:
    """Whether a matrix's rows (or its columns, if there are fewer) are orthogonal and of equal length."""
    if matrix.dim() != 2 or not 2 <= min(matrix.shape) <= _MOST_ORTHOGONAL:
        return False
    rows = (matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T).float()
    products = rows @ rows.T
    length = products.diagonal().mean()
    eye = torch.eye(len(rows), device=rows.device)
    return bool(length > 0) and bool((products / length - eye).abs().max() < 1e-3)


def _default_deviation(module: nn.Module, name: str) -> float | None:
    """torch's default: uniform in +-1/sqrt(fan_in) for linear and convolution layers, N(0, 1) for embeddings."""
    if not name.endswith("weight"):
        return None
    if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)):
        fan_in = nn.init._calculate_fan_in_and_fan_out(module.weight)[0]
        return 1 / math.sqrt(3 * fan_in) if fan_in else None
    return 1.0 if isinstance(module, nn.Embedding) else None


def gradient_facts(
    record: StepRecord,
    model: nn.Module,
    places: Callable[[nn.Module], Place | None],
    clip_at: float | None,
    accumulation: int,
) -> GradientFacts | None:
    """The gradient of each parameter; None if backward was not reached."""
    if record.failed_stage in (Stage.FORWARD, Stage.LOSS):
        return None
    owners = {id(p): (n, m) for n, m in model.named_modules() for p in m.parameters(recurse=False)}
    found = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad and parameter.grad is None:
            continue  # a parameter frozen at the end of the step still has its gradient
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
                non_finite=0 if grad is None else int((~torch.isfinite(grad)).sum()),
                where=places(module),
            )
        )
    norms = [g.norm for g in found if g.norm is not None]
    return GradientFacts(
        failure=record.failure if record.failed_stage == Stage.GRADIENTS else None,
        gradients=tuple(found),
        norm=total_norm(norms),
        clip_at=clip_at,
        loss_finite=record.loss is None or math.isfinite(record.loss),
        loss_requires_grad=record.loss_tensor is None or record.loss_tensor.requires_grad,
        accumulation=accumulation,
    )
