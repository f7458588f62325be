"""What every training of torch begins with: its model, what of it is trained, its device and its processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import nn

from trainwright.adapters.torch.memory import plan_memory
from trainwright.core import Place
from trainwright.seams.devices.memory_owners import accelerators
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.stages import IneffectiveFreeze, SetupFacts


def setup_facts(
    model: nn.Module,
    optimizers: Sequence[Any],
    seen: BuiltObjects,
    *,
    called: Sequence[nn.Module],
    device: str = "",
    optimizer_name: str = "",
    **known: Any,
) -> SetupFacts:
    """The facts of a training, of any kind.

    Args:
        model: what holds all that is trained.
        called: what the step calls of it; the first one names the model.
        device: empty: the weights'.
        optimizer_name: the framework's name for an optimizer that is not built yet.
        known: fields of what the kind of training knows.
    """
    counts = [(p.numel(), p.requires_grad) for p in model.parameters()]
    device = device or next((p.device.type for p in model.parameters()), "cpu")
    return SetupFacts(
        model_class=type(called[0]).__name__ if called else "",
        loads_checkpoint=any(m in seen.loadings for m in model.modules()),
        idle=idle_settings(m for m in called if m not in seen.loadings),
        trained_before=any(p in seen.trained_earlier for p in model.parameters()),
        unmatched_checkpoints=tuple(seen.unmatched.values()),
        parameters=sum(n for n, _ in counts),
        trainable_parameters=sum(n for n, needed in counts if needed),
        planned_memory=plan_memory(model, next(iter(optimizers), None), optimizer_name),
        frozen_at=seen.freezing_lines(),
        ineffective_freezes=ineffective_freezes(model, optimizers, seen),
        device=device,
        accelerators=accelerators(device),
        ranks=seen.ranks,
        **known,
    )


def ineffective_freezes(
    model: nn.Module, optimizers: Sequence[Any], seen: BuiltObjects
) -> tuple[IneffectiveFreeze, ...]:
    """Assignments that look as if they froze parameters, although these are trained.

    Parameters that the script has once frozen, and trains now, are meant to be trained.
    """
    found: dict[tuple[str, Place], list[Any]] = {}
    for reference, attribute, place in seen.misspelt:
        if (owner := reference()) is not None and getattr(owner, attribute, None) is False:
            found.setdefault((attribute, place), []).append(owner)
    held = {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
    names = {
        id(p): name
        for name, p in model.named_parameters()
        if p.requires_grad and (not held or id(p) in held) and seen.frozen_at(p) is None
    }
    modules = {id(m) for m in model.modules()}
    result = []
    for (attribute, place), owners in found.items():
        layers = [o for o in owners if isinstance(o, nn.Module) and id(o) in modules]
        below = [p for layer in layers for p in layer.parameters()] + [o for o in owners if id(o) in names]
        trainable = tuple(dict.fromkeys(names[id(p)] for p in below if id(p) in names))
        if trainable:
            result.append(
                IneffectiveFreeze(
                    attribute=attribute,
                    on_modules=bool(layers),
                    kind=type(owners[0]).__name__,
                    objects=len(layers) or len(owners),
                    parameters=trainable,
                    where=place,
                )
            )
    return tuple(result)


def idle_settings(models: Iterable[Any]) -> tuple[str, ...]:
    """Each in a few words.

    GPT-2 once had `n_ctx` beside `n_positions`; only the latter sizes the table of positions.
    """
    found: list[str] = []
    for model in models:
        config = getattr(model, "config", None)
        context, positions = getattr(config, "n_ctx", None), getattr(config, "n_positions", None)
        if (
            getattr(config, "model_type", "") != "gpt2"
            or not isinstance(context, int)
            or not isinstance(positions, int)
        ):
            continue
        if context != positions:
            found.append(f"n_ctx={context:,} changes nothing: n_positions sizes the model, and is {positions:,}")
    return tuple(found)
