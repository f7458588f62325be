"""Starts a training: in a new folder, or from the state of the same run in an existing one.

Its components are assembled from the recipe, and the debugger tries them before they are first used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

import trainwright
from trainwright.core import Stage, StageRun, Status
from trainwright.errors import UsageError
from trainwright_lm.atomic import is_seen
from trainwright_lm.config import Recipe, as_tables
from trainwright_lm.network.loss import FORMATS, key_token_ids, told_spellings
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs import checkpoint as checkpoints
from trainwright_lm.runs.checkpoint import Checkpoint, State
from trainwright_lm.runs.folder import CHECKPOINTS, LOG, begin_run, is_run, read_manifest, read_recipe
from trainwright_lm.tokens.pack import Windows
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.training import log as logs
from trainwright_lm.training.arithmetic import Arithmetic
from trainwright_lm.training.compiling import compile_loss, is_wanted
from trainwright_lm.training.live import Live
from trainwright_lm.training.optimizers import build_optimizer, load_optimizer_tensors
from trainwright_lm.training.plan import Plan, make_plan
from trainwright_lm.training.processes import Processes, SummedLoss, spread

# Enough windows for comparisons within and between batches, and few enough to take only seconds.
WINDOWS = 4
BATCHES = 8
TOKENS = 32
BUDGET_SECONDS = 20.0
# Settings that may change when a run resumes. They do not affect the weights or the logged training, except that
# precision, threads, compile and micro_windows alter the last digits, and changing those is reported.
FREE = {
    "run.precision", "run.threads", "run.compile", "data.micro_windows", "run.keep", "run.sinks", "run.check",
    "run.save_every", "run.sample_every", "run.prompts", "run.distributed", "run.common_disk",
}  # fmt: skip


def open_checkpoint(
    data: PreparedData,
    folder: Path,
    recipe: Recipe,
    resume: bool | None,
    processes: Processes,
    say: Callable[[str], None],
) -> Checkpoint | None:
    """The checkpoint to resume from, in all processes; None: start from the beginning. Claims the folder for this run.

    Args:
        resume: True: a run must exist; False: an existing run is removed; None: resume if there is one.

    Raises:
        UsageError: if the folder has another run, its state does not allow the request, or the machines do not share it.
        ReadError: if the run has no complete checkpoint.
    """
    newest = (checkpoints.steps(folder / CHECKPOINTS) or [0])[-1]
    if processes.any(newest > processes.given(newest)) and resume is not False:
        raise UsageError(
            f"Of the machines, that of process 0 must hold the run: another one has a later checkpoint in {folder}. Start "
            "torchrun with --node-rank 0 there, or remove that folder."
        )
    held = _opened(data, folder, recipe, resume, say) if processes.first else None
    if not recipe.run.common_disk:
        sent: Checkpoint | None = processes.given(held)
        return sent
    update: int = processes.given(held.state.update if held else -1)
    if processes.any(not is_seen(lambda: is_run(folder))):
        raise UsageError(
            f"All machines must see {folder}, where process 0 keeps the run; one does not. Use a folder that they share, or "
            "--set run.common_disk=false."
        )
    if update < 0 or held is not None:
        return held
    return checkpoints.load(checkpoints.step_folder(folder / CHECKPOINTS, update))


def _opened(
    data: PreparedData, folder: Path, recipe: Recipe, resume: bool | None, say: Callable[[str], None]
) -> Checkpoint | None:
    if not is_run(folder):
        if resume:
            raise UsageError(
                f"--resume needs an existing run; there is none in {folder}. Leave out --resume to begin one."
            )
        begin_run(folder, recipe, data.tokenizer, _manifest(data))
        return None
    # Without a checkpoint nothing was trained, so the recipe may be replaced, for example after it was rejected.
    if resume is False or not checkpoints.steps(folder / CHECKPOINTS):
        begin_run(folder, recipe, data.tokenizer, _manifest(data), anew=True)
        return None
    _check_same(folder, recipe, data)
    print_of_data = str(data.manifest["fingerprint"])
    held = checkpoints.newest_whole(folder / CHECKPOINTS, lambda s: _unlike(s, recipe, print_of_data), say)
    if held is None:
        return None
    logs.cut(folder / LOG, held.state.update)
    if held.state.update and not held.optimizer:
        raise UsageError(
            f"The run in {folder} was imported without an optimizer's state, so its training cannot be resumed. "
            "You can use and export it. Choose another --out to train."
        )
    return held


def _check_same(folder: Path, recipe: Recipe, data: PreparedData) -> None:
    way_out = "Use the original value, choose another --out, or start over with --restart."
    if difference := first_difference(as_tables(read_recipe(folder)), as_tables(recipe)):
        raise UsageError(f"The run in {folder} must keep its recipe, but {difference}. {way_out}")
    before, now = read_manifest(folder).get("fingerprint"), data.manifest["fingerprint"]
    if before != now:
        raise UsageError(
            f"The run in {folder} must keep its data, but its fingerprint was {before}, and that of {data.folder} is {now}. {way_out}"
        )


def _unlike(state: State, recipe: Recipe, data: str) -> str:
    """Why a checkpoint does not belong to this run; "" if it does."""
    if difference := first_difference(state.recipe, as_tables(recipe)):
        return difference
    return "" if state.data == data else f"it was trained on the data {state.data}, not on {data}"


def _manifest(data: PreparedData) -> dict[str, Any]:
    """The data's description that the run keeps, including the data's location."""
    return {**data.manifest, "folder": str(data.folder.resolve())}


@dataclass(frozen=True, kw_only=True)
class AssembledTraining:
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


def assemble(
    data: PreparedData,
    folder: Path,
    recipe: Recipe,
    held: Checkpoint | None,
    processes: Processes,
    live: Live,
    arithmetic: Arithmetic,
) -> AssembledTraining:
    """The components of a training, new or restored from the checkpoint; the debugger checks new ones first.

    Raises:
        UsageError: if the recipe does not fit the data or the processes, or the debugger finds an error.
        ReadError: if the checkpoint belongs to another model.
    """
    plan = make_plan(data.train, recipe, processes)
    if held is None:
        _say_what_is_lost(plan, recipe, live)
    key_ids, split = key_token_ids(data.tokenizer.encode, recipe.loss.key_tokens)
    if split:
        live.say(f"These key tokens are more than one token each, so they get no weight: {told_spellings(split)}.")
    model = _new_model(recipe, processes)
    if held is not None:
        checkpoints.fill(model, held)
    elif recipe.run.check and processes.first:
        model = _checked(model, plan, recipe, processes, live, FORMATS[arithmetic.muon_precision])
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
        load_optimizer_tensors(optimizer, held.optimizer)
    return AssembledTraining(
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


def _say_what_is_lost(plan: Plan, recipe: Recipe, live: Live) -> None:
    """Say before a new training that it repeats its windows too often, or that packing drops tokens."""
    windows = plan.windows
    if plan.much_repeated:
        live.say(plan.much_repeated)
    if windows.dropped_share and recipe.data.packing == "tail":
        live.say(
            f"{windows.whole:,} windows of {windows.context} tokens; packing by documents drops {windows.dropped_share:.1%} of "
            "the tokens, the incomplete end of each."
        )


def _checked(
    model: Transformer, plan: Plan, recipe: Recipe, processes: Processes, live: Live, muon_format: torch.dtype
) -> Transformer:
    """The model after the debugger has tried its first windows: another one if that failed.

    Raises:
        UsageError: if the debugger found an error.
    """
    with live.waiting("The debugger checks the training before it begins"):
        said, whole = rehearse(model, plan, recipe, muon_format)
    live.say(said)
    return model if whole else _new_model(recipe, processes)  # a failed check may not have restored everything


def _new_model(recipe: Recipe, processes: Processes) -> Transformer:
    torch.manual_seed(recipe.run.seed)
    model: Transformer = Transformer(recipe.model).to(processes.device)
    return model


def first_state(training: AssembledTraining, held: Checkpoint | None) -> State:
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
        versions={"torch": str(torch.__version__)},  # the packages that determine the last digits of results
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


def first_difference(begun: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first relevant setting that differs between two recipes' tables, with its values; "" if none does."""
    for section, settings in now.items():
        for key, value in settings.items():
            name, before = f"{section}.{key}", begun.get(section, {}).get(key)
            if name not in FREE and before != value:
                return f"{name} was {before!r} and is now {value!r}"
    return ""


def surroundings(state: State, now: State) -> list[str]:
    """The changes since the checkpoint that alter the last digits from here on."""

    def setting(section: str, name: str, default: Any) -> tuple[Any, Any]:
        was, will = (one.recipe[section].get(name, default) for one in (state, now))
        return was, will

    muon, several = now.recipe["optimizer"]["name"] == "muon", max(state.processes, now.processes) > 1
    pairs: list[tuple[str, bool, tuple[Any, Any]]] = [
        ("precision changes", True, (state.precision, now.precision)),
        ("precision of Muon's products changes", muon, (state.muon_precision, now.muon_precision)),
        ("threads change", bool(state.threads), (state.threads, now.threads)),
        ("device changes", bool(state.device), (state.device, now.device)),
        ("data.micro_windows changes", True, setting("data", "micro_windows", 0)),
        ("processes change", True, (state.processes, now.processes)),
        ("run.distributed changes", several, setting("run", "distributed", "ddp")),
        *((f"{name} changes", True, (state.versions.get(name, own), own)) for name, own in now.versions.items()),
    ]
    told = [f"{what} from {was} to {will}" for what, counts, (was, will) in pairs if counts and was != will]
    if state.compiled != now.compiled:
        told.append(f"layers and loss are {'' if now.compiled else 'no longer '}compiled")
    return told


def rehearse(model: Transformer, plan: Plan, recipe: Recipe, muon_format: torch.dtype) -> tuple[str, bool]:
    """Try the training's first windows with a separate optimizer; returns what to say, and whether that succeeded.

    "no fault found" covers only the stages that were reached. A try that fails is an error in Trainwright itself, since
    all the code is its own.

    Raises:
        UsageError: if the debugger found an error.
        KeyboardInterrupt: if it was interrupted.
    """
    try:
        report = trainwright.check(
            model=model,
            loader=_first_batches(plan),
            loss=mean_nats,
            optimizer=build_optimizer(model, recipe.optimizer, muon_format),
            budget=BUDGET_SECONDS,
            seed=recipe.run.seed,
        )
    except Exception as error:  # the debugger's own, of any kind
        return _failure(f"{type(error).__name__}: {error}"), False
    if report.message.startswith("Interrupted"):  # Ctrl-C is meant for the training as well
        raise KeyboardInterrupt
    errors = [finding for finding in report.findings if str(finding.severity) == "error"]
    if errors:
        raise UsageError(
            f"AssembledTraining does not start because the debugger found {errors[0].code} "
            f"{errors[0].name}: {errors[0].message}\n\n{report!r}\n\nFix it, or skip the check with --set run.check=false."
        )
    own = (Stage.EVALUATION, Stage.BASELINE)  # training does its own
    stages = [run for run in report.stages if run.stage not in own]
    checked = [run for run in stages if run.status.through]
    failed = [f"{run.stage.label}: {run.why}" for run in report.stages if run.status is Status.FAILED]
    why = "" if checked else report.message or "no stage was checked"
    if why := "; ".join(report.internal_errors or failed) or why:
        return _failure(why, checked), False
    found = [f"{f.code} {f.name} ({f.severity}): {f.message}" for f in report.findings if str(f.severity) != "note"]
    left = ", ".join(f"{run.stage.label} ({run.why})" for run in stages if not run.status.through)
    text = (
        f"The debugger tried the training's first windows for {report.seconds:.1f} s: "
        f"{'; '.join(found) or 'no fault found'}{f'; not checked: {left}' if left else ''}."
    )
    return text, True


def _failure(why: str, checked: Sequence[StageRun] = ()) -> str:
    seen = ", ".join(run.stage.label for run in checked)
    return (
        f"The debugger failed before the training: {why}. This is an internal error in Trainwright, not a fault of your "
        f"data or settings. AssembledTraining begins {f'with only these stages checked: {seen}' if seen else 'unchecked'}."
    )


def mean_nats(logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
    """The ordinary loss per token."""
    return F.cross_entropy(logits_BTV.flatten(0, 1).float(), targets_BT.flatten())


def _first_batches(plan: Plan) -> list[tuple[Tensor, Tensor]]:
    """Small batches from the beginnings of the first windows, over as many updates as needed."""
    updates = -(-WINDOWS * BATCHES // plan.at_once)
    indices = [index for update in range(updates) for index in plan.indices(update)][: WINDOWS * BATCHES]
    rows = torch.from_numpy(plan.windows.batch(np.array(indices)))[:, : TOKENS + 1]
    return [(piece[:, :-1].contiguous(), piece[:, 1:].contiguous()) for piece in rows.split(WINDOWS)]
