"""The parts of a user's own training loop, and the user's lines where each was written."""

from __future__ import annotations

from typing import Any

from trainwright.adapters.loop.accelerate import precision_of
from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.torch.idle_settings import idle_settings
from trainwright.adapters.torch.loader_lines import keywords_of, loader_places
from trainwright.adapters.torch.memory import planned
from trainwright.adapters.torch.optimizer import optimizer_places
from trainwright.core.finding import Place
from trainwright.seams.devices.memory_owners import accelerators
from trainwright.seams.torch.versions import is_autocast_on
from trainwright.stages.setup import SetupFacts

# The names for the data set of an evaluation loader.
_HELD_ROLES = {"train_dataset": "eval_dataset", "train_dataset_made": "eval_dataset_made"}


def setup_facts(training: LoopTraining) -> SetupFacts:
    """The parts, places and devices of the training that is about to start."""
    model = training.model
    counts = [(p.numel(), p.requires_grad) for p in model.parameters()]
    device = next((p.device.type for p in model.parameters()), "cpu")
    return SetupFacts(
        framework=training.body.framework,
        words=training.body.words,
        automatic_steps=training.body.automatic_steps,
        call="training loop",
        places=find_places(training),
        model_class=type(training.parts.roots[0]).__name__ if training.parts.roots else "",
        loads_checkpoint=any(m in training.seen.loadings for m in model.modules()),
        idle=idle_settings(m for m in training.parts.roots if m not in training.seen.loadings),
        trained_before=any(p in training.seen.trained_earlier for p in model.parameters()),
        unmatched_checkpoints=tuple(training.seen.unmatched.values()),
        parameters=sum(n for n, _ in counts),
        trainable_parameters=sum(n for n, needed in counts if needed),
        planned_memory=planned(model, next(iter(training.parts.optimizers), None)),
        frozen_at=training.seen.freezing_lines(),
        device=device,
        accelerators=accelerators(device),
        precision=precision_of(training.scope.values()) or ("bf16" if is_autocast_on("cpu") else "fp32"),
        batch_size=loader.batch_size or 0 if (loader := first_loader(training)) is not None else 0,
        accumulation=training.window,
        epochs=training.body.epochs(),
        ranks=training.seen.ranks,
        planned_updates=training.body.updates_planned(training),
    )


def first_loader(training: LoopTraining) -> Any:
    """The first loader that the loop iterates over, or None."""
    return training.loaders[0] if training.loaders else None


def find_places(training: LoopTraining) -> dict[str, Place]:
    """The user's lines, by role."""
    seen = training.seen
    places: dict[str, Place] = {}
    if training.body.where is not None:
        places |= {"train_call": training.body.where, "trainer": training.body.where}
    places |= training.body.places
    passed = training.parts.passed.places
    for kind, role in (
        ("step", "optimizer_step"),
        ("zero_grad", "zero_grad"),
        ("schedule", "schedule_step"),
        ("backward", "backward"),
    ):
        if kind in passed:
            places[role] = passed[kind]
    if "zero_grad" in places:
        places["clear_call"] = places["zero_grad"]
    for module in (*training.parts.roots, *training.model.children()):
        if module in seen.modules:
            places.setdefault("model", seen.modules[module])
    for optimizer in training.parts.optimizers:
        if optimizer in seen.optimizers:
            rates = training.parts.passed.rates.get(id(optimizer), ())
            places = {**optimizer_places(optimizer, seen.optimizers[optimizer], rates), **places}
    for schedule in training.parts.schedules:
        if schedule in seen.schedules:
            places.setdefault("scheduler", seen.schedules[schedule].place)
            places |= {r: p for r, p in keywords_of(seen.schedules[schedule]).items() if r not in places}
    stilled = [seen.stilled[m] for m in (*training.parts.roots, *training.model.modules()) if m in seen.stilled]
    if stilled:
        places["mode_change"] = stilled[0]
    if (loader := first_loader(training)) is not None:
        places |= {r: p for r, p in loader_places(loader, seen).items() if r not in places}
    for _, held in training.evaluation_loaders()[:1]:
        found = loader_places(held, seen)
        places |= {_HELD_ROLES[r]: p for r, p in found.items() if r in _HELD_ROLES and _HELD_ROLES[r] not in places}
    return places
