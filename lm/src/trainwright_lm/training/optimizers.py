"""Optimizers and learning rate schedule: groups with and without weight decay, AdamW and Muon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from torch.optim import AdamW, Optimizer
from torch.optim.adamw import adamw

from trainwright.errors import ReadError, UsageError
from trainwright_lm.config import OptimizerConfig, ScheduleConfig
from trainwright_lm.network.model import FUSED

# Keller Jordan's values (https://kellerjordan.github.io/posts/muon): momentum, and the quintic that drives all singular
# values toward 1, steepest at 0, in five steps.
MUON_MOMENTUM = 0.95
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5


def build_optimizer(model: nn.Module, config: OptimizerConfig, muon_format: torch.dtype = torch.bfloat16) -> Optimizer:
    """AdamW, or Muon for the layers' matrices and AdamW for the rest. Each group stores its peak rate as "base_lr".

    Weight decay applies to matrices (including embeddings, as in GPT-2's published training), not to norms and biases.

    Args:
        muon_format: format of Muon's products; its author uses bf16.
    """
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    muon = [(n, p) for n, p in named if config.name == "muon" and p.ndim == 2 and n.startswith("layers.")]
    chosen = {name for name, _ in muon}
    rest = [(name, parameter) for name, parameter in named if name not in chosen]
    groups: list[dict[str, Any]] = []
    for parts in sorted({_parts(name) for name, _ in muon}):
        members = [(name, parameter) for name, parameter in muon if _parts(name) == parts]
        groups.append(_group(members, config.muon_learning_rate, config.weight_decay, parts=parts))
    for decayed in (True, False):
        members = [(name, parameter) for name, parameter in rest if (parameter.ndim >= 2) == decayed]
        groups.append(_group(members, config.learning_rate, config.weight_decay if decayed else 0.0))
    groups = [group for group in groups if group["params"]]
    betas = (config.beta1, config.beta2)
    if muon:
        return MuonAdamW(groups, lr=config.learning_rate, betas=betas, eps=config.epsilon, muon_format=muon_format)
    return AdamW(groups, lr=config.learning_rate, betas=betas, eps=config.epsilon, fused=True)


def _group(members: list[tuple[str, Tensor]], rate: float, decay: float, **more: Any) -> dict[str, Any]:
    return {"params": members, "lr": rate, "base_lr": rate, "weight_decay": decay, **more}


def _parts(name: str) -> int:
    """The number of matrices stacked in the parameter."""
    return FUSED.get(name.split(".")[-2], 1)


class MuonAdamW(Optimizer):
    """Muon for the groups that have "parts", the number of matrices in each parameter; AdamW for the others.

    Muon is Keller Jordan's (https://kellerjordan.github.io/posts/muon): momentum, orthogonalized by Newton-Schulz,
    times sqrt(max(1, rows / columns)). Matrices fused in one parameter are orthogonalized separately, as he recommends.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        muon_format: torch.dtype = torch.bfloat16,
    ) -> None:
        self._muon_format = muon_format
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "parts": 0})

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters that have a gradient once."""
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group["parts"]:
                for same in _by_shape(parameters):
                    self._muon(same, group)
            else:
                self._adamw(parameters, group)

    def _muon(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update parameters of the same shape: stacked, they are orthogonalized by few large products."""
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)
        grads = [parameter.grad for parameter in parameters]
        momenta = [self.state[parameter]["momentum"] for parameter in parameters]
        torch._foreach_lerp_(momenta, grads, 1 - MUON_MOMENTUM)
        updates = [grad.lerp(momentum, MUON_MOMENTUM) for grad, momentum in zip(grads, momenta, strict=True)]
        rows, columns = updates[0].shape[0] // group["parts"], updates[0].shape[1]
        rate = group["lr"] * math.sqrt(max(1, rows / columns))
        torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(parameters, _apart(updates, group["parts"], self._muon_format), alpha=-rate)

    def _adamw(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter].update(
                    step=torch.zeros((), dtype=torch.float32, device=parameter.device),
                    exp_avg=torch.zeros_like(parameter),
                    exp_avg_sq=torch.zeros_like(parameter),
                )
        states = [self.state[parameter] for parameter in parameters]
        adamw(
            parameters,
            [parameter.grad for parameter in parameters],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def _by_shape(parameters: Iterable[Tensor]) -> list[list[Tensor]]:
    """Parameters of the same shape together; sharded ones, each of which is gathered whole, one by one."""
    alike: dict[Any, list[Tensor]] = {}
    for parameter in parameters:
        alike.setdefault(parameter if isinstance(parameter, DTensor) else parameter.shape, []).append(parameter)
    return list(alike.values())


def _apart(updates: Sequence[Tensor], parts: int, muon_format: torch.dtype) -> list[Tensor]:
    """Orthogonalize each of the matrices stacked in each of the updates, which have the same shape, separately.

    A sharded update (FSDP2) is gathered in each process, and each keeps its own rows of the result.
    """
    whole = [update.full_tensor() if isinstance(update, DTensor) else update for update in updates]
    rows, columns = whole[0].shape
    matrices = torch.stack(whole).view(len(whole) * parts, rows // parts, columns)
    found = orthogonal(matrices, muon_format).reshape(len(whole), rows, columns).unbind()
    return [
        _sharded(one, update) if isinstance(update, DTensor) else one
        for one, update in zip(found, updates, strict=True)
    ]


def _sharded(whole: Tensor, like: DTensor) -> Tensor:
    replicated = DTensor.from_local(whole, like.device_mesh, [Replicate()], run_check=False)
    sharded: Tensor = replicated.redistribute(placements=like.placements)
    return sharded


def orthogonal(matrices: Tensor, computed_in: torch.dtype = torch.bfloat16, steps: int = NEWTON_SCHULZ_STEPS) -> Tensor:
    """(parts, rows, columns), each matrix with singular values near 1 after five Newton-Schulz steps."""
    a, b, c = NEWTON_SCHULZ
    x = matrices.to(computed_in)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as flat tensors named "parameter:state"; rates are not included: the schedule sets them."""
    return {
        f"{name}:{key}": value
        for name, parameter in _named(optimizer)
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load the state that `optimizer_tensors` returned into the optimizer, as copies.

    Raises:
        ReadError: if the tensors do not match the optimizer's parameters.
    """
    named = dict(_named(optimizer))
    expected = _expected(optimizer) if tensors else set()
    if set(tensors) != expected:
        odd = sorted(set(tensors) ^ expected)[0]
        raise ReadError(
            f'The optimizer\'s state must fit the model and the optimizer; "{odd}" is '
            f"{'missing' if odd in expected else 'unexpected'}. The checkpoint belongs to another recipe."
        )
    states: dict[str, dict[str, Tensor]] = {}
    # In the same order everywhere: sharding is a collective operation.
    for full_name, tensor in sorted(tensors.items()):
        name, _, key = full_name.rpartition(":")
        if tensor.shape not in (named[name].shape, ()):
            raise ReadError(
                f"The optimizer's state must fit the model; {full_name} has shape {tuple(tensor.shape)}, the parameter "
                f"{tuple(named[name].shape)}. The checkpoint belongs to another recipe."
            )
        states.setdefault(name, {})[key] = _placed(tensor.detach(), named[name])
    optimizer.state.clear()
    for name, state in states.items():
        optimizer.state[named[name]] = state


def _placed(tensor: Tensor, parameter: Tensor) -> Tensor:
    """A copy of the tensor where the parameter is, sharded like it."""
    if isinstance(parameter, DTensor) and tensor.shape == parameter.shape:
        mesh = parameter.device_mesh
        return distribute_tensor(tensor.to(mesh.device_type), mesh, parameter.placements)
    return tensor.to(parameter.device, copy=True)


def _expected(optimizer: Optimizer) -> set[str]:
    """The names of the state's tensors after a step."""
    return {
        f"{name}:{key}"
        for group in optimizer.param_groups
        for name in group["param_names"]
        for key in (("momentum",) if group.get("parts") else ("step", "exp_avg", "exp_avg_sq"))
    }


def _named(optimizer: Optimizer) -> Iterable[tuple[str, Tensor]]:
    for group in optimizer.param_groups:
        yield from zip(group["param_names"], group["params"], strict=True)


def rate_share(update: int, total: int, config: ScheduleConfig) -> float:
    """The fraction of the peak rate in this update, 0 to total - 1; update `total` would reach the floor.

    Warm-up rises linearly to 1. "wsd" decays as 1 - sqrt over its last fraction (Hägele et al., arXiv 2405.18392).

    Raises:
        UsageError: if warm-up takes all updates.
    """
    warmup = config.warmup_updates
    if warmup >= total:
        raise UsageError(
            f"schedule.warmup_updates must be less than the number of updates; got {warmup} of {total}. "
            "Lower it, or train longer."
        )
    if update < warmup:
        return (update + 1) / warmup
    if config.shape == "constant":
        return 1.0
    begin = max(warmup, total - round(config.decay_share * total)) if config.shape == "wsd" else warmup
    if update < begin:
        return 1.0
    progress = min(1.0, (update - begin) / (total - begin))
    left = {"cosine": 0.5 * (1 + math.cos(math.pi * progress)), "linear": 1 - progress, "wsd": 1 - math.sqrt(progress)}[
        config.shape
    ]
    return config.floor + (1 - config.floor) * left
