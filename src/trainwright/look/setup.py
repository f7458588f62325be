"""The parts of a training of the script's own, or of Lightning, and the user's lines where each was written."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from trainwright.adapters.torch.idle_settings import idle_settings
from trainwright.adapters.torch.loader_lines import keywords_of, loader_places
from trainwright.adapters.torch.memory import planned
from trainwright.adapters.torch.optimizer import optimizer_places
from trainwright.adapters.torch.words import LIGHTNING, LOOP, WITH_ACCELERATE
from trainwright.core import Place
from trainwright.look.state import Look, Trainings
from trainwright.seams.devices.memory_owners import accelerators
from trainwright.seams.listening.seen import seen
from trainwright.seams.source.special_methods import misspelled_methods, user_scopes
from trainwright.seams.source.undefined_names import undefined_names
from trainwright.seams.torch.versions import is_autocast_on
from trainwright.stages import SetupFacts

# The roles of the lines where what reaches a step's gates is called.
_GATES = {"step": "optimizer_step", "zero_grad": "zero_grad", "schedule": "schedule_step", "backward": "backward"}


def setup_facts(look: Look, looking: Trainings, schedules: list[Any]) -> SetupFacts:
    """The parts, places and devices of a training whose first update was made."""
    model, found, accelerator = look.model, seen(), _accelerator_of(look.scope.values())
    optimizers = look.passed.optimizers or looking.optimizers.list_live()
    counts = [(p.numel(), p.requires_grad) for p in model.parameters()]
    device = next((p.device.type for p in model.parameters()), "cpu")
    precision = getattr(accelerator, "mixed_precision", None)
    is_lightning = looking.lightning is not None
    return SetupFacts(
        framework="lightning" if is_lightning else "torch" if accelerator is None else "accelerate",
        words=LIGHTNING if is_lightning else LOOP if accelerator is None else WITH_ACCELERATE,
        automatic_steps=is_lightning and bool(getattr(model, "automatic_optimization", False)),
        call="training loop",
        places=_find_places(look, looking, optimizers, schedules),
        misspelled=misspelled_methods(user_scopes(), found.modules),
        undefined=undefined_names(),
        model_class=type(look.roots[0]).__name__ if look.roots else "",
        loads_checkpoint=any(m in found.loadings for m in model.modules()),
        idle=idle_settings(m for m in look.roots if m not in found.loadings),
        trained_before=any(p in found.trained_earlier for p in model.parameters()),
        unmatched_checkpoints=tuple(found.unmatched.values()),
        parameters=sum(n for n, _ in counts),
        trainable_parameters=sum(n for n, needed in counts if needed),
        planned_memory=planned(model, next(iter(optimizers), None)),
        frozen_at=found.freezing_lines(),
        device=device,
        accelerators=accelerators(device),
        precision=precision if precision in ("bf16", "fp16") else "bf16" if is_autocast_on("cpu") else "fp32",
        batch_size=look.loader.batch_size or 0 if look.loader is not None else 0,
        accumulation=look.draws,
        ranks=found.ranks,
    )


def _accelerator_of(values: Iterable[Any]) -> Any:
    """The first Accelerator among some objects, or None."""
    kind = getattr(sys.modules.get("accelerate.accelerator"), "Accelerator", None)
    return next((v for v in values if kind is not None and isinstance(v, kind)), None)


def _find_places(look: Look, looking: Trainings, optimizers: list[Any], schedules: list[Any]) -> dict[str, Place]:
    """The user's lines, by role."""
    found, places = seen(), dict[str, Place]()
    where = looking.where if looking.lightning is not None else look.where
    if where is not None:
        places |= {"train_call": where, "trainer": where}
    passed = look.passed.places
    places |= {role: passed[kind] for kind, role in _GATES.items() if kind in passed}
    if "zero_grad" in places:
        places["clear_call"] = places["zero_grad"]
    for module in (*look.roots, *look.model.children()):
        if module in found.modules:
            places.setdefault("model", found.modules[module])
    for optimizer in optimizers:
        if optimizer in found.optimizers:
            rates = look.passed.rates.get(id(optimizer), ())
            places = {**optimizer_places(optimizer, found.optimizers[optimizer], rates), **places}
    for schedule in schedules:
        if schedule in found.schedules:
            places.setdefault("scheduler", found.schedules[schedule].place)
            places |= {r: p for r, p in keywords_of(found.schedules[schedule]).items() if r not in places}
    stilled = [found.stilled[m] for m in (*look.roots, *look.model.modules()) if m in found.stilled]
    if stilled:
        places["mode_change"] = stilled[0]
    if look.loader is not None:
        places |= {r: p for r, p in loader_places(look.loader, found).items() if r not in places}
    return places
