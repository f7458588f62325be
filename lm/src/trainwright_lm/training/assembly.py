"""Assembles the components of a training from its recipe."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer

from trainwright.errors import UsageError
from trainwright_lm.config import Recipe, as_tables
from trainwright_lm.network.loss import FORMATS, key_token_ids, told_spellings
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs import checkpoint as checkpoints
from trainwright_lm.runs.checkpoint import Checkpoint, State
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.training.arithmetic import Arithmetic
from trainwright_lm.training.compiling import compile_loss, is_wanted
from trainwright_lm.training.live import Live
from trainwright_lm.training.optimizers import build_optimizer, load_optimizer_tensors, rate_share
from trainwright_lm.training.plan import Plan, planned
from trainwright_lm.training.processes import Processes, SummedLoss, shared_out, spread
from trainwright_lm.training.rehearsal import rehearse
from trainwright_lm.training.start import surroundings, versions


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything that the training loop uses."""

    recipe: Recipe
    folder: Path
    data: PreparedData
    plan: Plan
    validation: Windows
    processes: Processes
    arithmetic: Arithmetic
    model: Transformer
    loss: SummedLoss
    module: nn.Module
    """The training loss; wrapped if several processes train."""
    optimizer: Optimizer
    key_ids: list[int]
    live: Live


def with_vocabulary(recipe: Recipe, data: PreparedData) -> Recipe:
    """The recipe with the data's vocabulary size.

    Raises:
        UsageError: if the recipe gives a different one.
    """
    size, named = data.tokenizer.vocabulary_size, recipe.model.vocabulary_size
    if named not in (0, size):
        raise UsageError(
            f"model.vocabulary_size must be that of the data's tokenizer, {size}, or 0; got {named}. Leave it out."
        )
    return dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, vocabulary_size=size))


def fitted_plan(data: PreparedData, recipe: Recipe, processes: Processes) -> Plan:
    """The windows of each update.

    Raises:
        UsageError: if the recipe does not fit the data or the processes, or its warm-up does not end.
    """
    windows = Windows(data.train, recipe.model.context, recipe.data.packing, recipe.data.limit)
    plan = planned(windows, recipe, processes)
    rate_share(0, plan.updates, recipe.schedule)
    return plan


def assembled(
    data: PreparedData,
    folder: Path,
    recipe: Recipe,
    held: Checkpoint | None,
    processes: Processes,
    live: Live,
    arithmetic: Arithmetic,
) -> Training:
    """The components of a training, new or restored from the checkpoint; the debugger checks new ones first.

    Raises:
        UsageError: if the recipe does not fit the data or the processes, or the debugger finds an error.
        ReadError: if the checkpoint belongs to another model.
    """
    plan = fitted_plan(data, recipe, processes)
    windows = plan.windows
    if plan.much_repeated and held is None:
        live.say(plan.much_repeated)
    if windows.dropped_share and recipe.data.packing == "tail" and held is None:
        live.say(
            f"{windows.whole:,} windows of {windows.context} tokens; packing by documents drops {windows.dropped_share:.1%} of "
            "the tokens, the incomplete end of each."
        )
    key_ids, split = key_token_ids(data.tokenizer.encode, recipe.loss.key_tokens)
    if split:
        live.say(f"These key tokens are more than one token each, so they get no weight: {told_spellings(split)}.")
    model = _new_model(recipe, processes)
    if held is not None:
        checkpoints.fill(model, held)
    elif recipe.run.check and processes.first:
        with live.waiting("The debugger checks the training before it begins"):
            said, whole = rehearse(model, plan, recipe, FORMATS[arithmetic.muon_precision])
        live.say(said)
        if not whole:
            model = _new_model(recipe, processes)  # a failed walk may not have restored everything
    loss = SummedLoss(model, recipe.loss.z_loss)
    if is_wanted(recipe, processes) and not (held and held.state.update >= plan.updates):
        inputs_BT, targets_BT = plan.share(0, processes)
        at_once = slice(recipe.data.micro_windows or None)
        with live.waiting("Compiling the layers and the loss"):
            said = compile_loss(loss, inputs_BT[at_once], targets_BT[at_once], arithmetic.precision, processes)
        live.say(said)
    module = spread(loss, recipe.run.distributed, processes)
    optimizer = build_optimizer(model, recipe.optimizer, FORMATS[arithmetic.muon_precision])
    if held is not None and held.optimizer:
        load_optimizer_tensors(optimizer, shared_out(held.optimizer, optimizer))
    return Training(
        recipe=recipe,
        folder=folder,
        data=data,
        plan=plan,
        processes=processes,
        model=model,
        loss=loss,
        module=module,
        validation=Windows(data.validation, recipe.model.context, recipe.data.packing),
        optimizer=optimizer,
        key_ids=key_ids,
        arithmetic=arithmetic,
        live=live,
    )


def _new_model(recipe: Recipe, processes: Processes) -> Transformer:
    torch.manual_seed(recipe.run.seed)
    model: Transformer = Transformer(recipe.model).to(processes.device)
    return model


def first_state(training: Training, held: Checkpoint | None) -> State:
    """The state from which the loop starts; reports what has changed since the checkpoint."""
    fresh = State(
        update=0,
        recipe=as_tables(training.recipe),
        data=str(training.data.manifest["fingerprint"]),
        precision=training.arithmetic.precision,
        muon_precision=training.arithmetic.muon_precision,
        threads=training.arithmetic.threads,
        processes=training.processes.count,
        device=training.processes.device.type,
        compiled=training.loss.compiled,
        versions=versions(),
    )
    if held is None:
        return fresh
    for text in surroundings(held.state, fresh):
        training.live.say(f"No longer bit for bit the same from here on: {text}.")
    now = {
        k: getattr(fresh, k)
        for k in ("recipe", "precision", "muon_precision", "threads", "processes", "device", "compiled", "versions")
    }
    return dataclasses.replace(held.state, **now)
