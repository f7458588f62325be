"""Trains a model from scratch: assemble, resume from a checkpoint; update, log, evaluate, save."""

from __future__ import annotations

import dataclasses
import math
import signal
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from trainwright.errors import TrainwrightError, UsageError
from trainwright_lm.completion.complete import Completer
from trainwright_lm.config import Recipe
from trainwright_lm.network.loss import computing, perplexity_of, window_weights
from trainwright_lm.network.model import Transformer
from trainwright_lm.runs import checkpoint as checkpoints
from trainwright_lm.runs import sharded
from trainwright_lm.runs.checkpoint import State
from trainwright_lm.runs.folder import CHECKPOINTS, LOG, claimed, is_run
from trainwright_lm.tokens.prepared import PreparedData
from trainwright_lm.training import log as logs
from trainwright_lm.training.arithmetic import decide_arithmetic, on_threads
from trainwright_lm.training.assembly import AssembledTraining, assemble, first_state, open_checkpoint, with_vocabulary
from trainwright_lm.training.compiling import uncompiled
from trainwright_lm.training.live import Live, Stopping
from trainwright_lm.training.optimizers import optimizer_tensors, rate_share
from trainwright_lm.training.plan import make_plan, seed_of
from trainwright_lm.training.processes import Processes, exchanging, joined, mean_nats, whole


class Tally:
    """Loss and time of the updates since the last line of the log."""

    def __init__(self, state: State, processes: Processes) -> None:
        self._nats: Tensor | float = state.open_nats if processes.first else 0.0
        self._weight: Tensor | float = state.open_weight
        self._updates = 0
        self.seconds = self._seconds_before = state.seconds
        self.go_on()

    def add(self, nats: Tensor, weight: Tensor | float) -> None:
        """Add one update."""
        self._nats, self._weight, self._updates = nats + self._nats, weight + self._weight, self._updates + 1

    def settled(self, processes: Processes) -> tuple[float, float]:
        """The summed nats and weight of all processes; from here on, the first process holds the sum."""
        nats = torch.as_tensor(self._nats, dtype=torch.float64, device=processes.device)
        total = processes.total(nats.clone()).item()
        self._nats, self._weight = total if processes.first else 0.0, float(self._weight)
        return total, self._weight

    def taken(self) -> tuple[int, float]:
        """The updates of this session since the last line, and their seconds; starts a new line."""
        self.pause()
        updates, seconds = self._updates, self.seconds - self._seconds_before
        self._nats = self._weight = 0.0
        self._updates, self._seconds_before = 0, self.seconds
        return updates, seconds

    def pause(self) -> None:
        """Stop the clock: what follows is not training."""
        self.seconds += time.perf_counter() - self._going
        self.go_on()

    def go_on(self) -> None:
        """Restart the clock."""
        self._going = time.perf_counter()


@dataclass(frozen=True, kw_only=True)
class TrainingOutcome:
    """How a training ended."""

    updates: int
    """Number of updates done."""
    of: int
    best_loss: float | None
    """Lowest validation loss in nats per token."""
    best_update: int | None
    seconds: float
    """Time spent on updates, over all sessions of the run."""
    signal: int = 0
    """Ctrl-C's or SIGTERM's number, if any process received it before the last update; otherwise 0."""


def train(data: PreparedData, folder: Path, recipe: Recipe, *, resume: bool | None = None) -> TrainingOutcome:
    """Train to the recipe's last update, in one process or all that torchrun started; checkpoints go to the folder.

    Args:
        resume: True: resume the folder's run; False: remove it and start over; None: resume if there is one.

    Raises:
        UsageError: if recipe, data and folder do not match, or the debugger finds an error.
        ReadError: if none of the run's checkpoints is complete.
        WriteError: if something cannot be written; earlier checkpoints stay intact.
        TrainwrightError: if the loss is no longer finite, or a GPU's memory does not suffice.
    """
    with joined() as processes:
        try:
            return train_connected(data, folder, recipe, resume, processes)
        except torch.OutOfMemoryError as error:
            at_once = recipe.data.micro_windows or recipe.data.windows // processes.count
            raise TrainwrightError(
                f"The GPU's memory does not suffice for {at_once} windows at a time. Lower data.micro_windows, which leaves "
                f"the updates as they are, and run the same command again. ({str(error).splitlines()[0]})"
            ) from error


def train_connected(
    data: PreparedData, folder: Path, recipe: Recipe, resume: bool | None, processes: Processes
) -> TrainingOutcome:
    """The same in this process, which is connected to the others."""
    with ExitStack() as stack:
        recipe = with_vocabulary(processes.given(recipe), data)
        logs.check_sinks(recipe.run.sinks)
        own = data.manifest["fingerprint"]
        if processes.any(own != processes.given(own)):
            raise UsageError(f"{data.folder} must be the same on all machines: the data's fingerprints differ.")
        if not is_run(folder):
            make_plan(data.train, recipe, processes)  # what does not fit begins no run
        stack.enter_context(claimed(folder) if processes.first else nullcontext())
        live = Live(silent=not processes.first)
        begun = time.monotonic()
        held = open_checkpoint(data, folder, recipe, resume, processes, live.say)
        with live.waiting("Measuring what is fastest here"):
            arithmetic = decide_arithmetic(recipe, held.state if held else None, processes)
        live.say(arithmetic.line)
        stack.enter_context(on_threads(arithmetic.threads))
        training = assemble(data, folder, recipe, held, processes, live, arithmetic)
        size = f"{sum(p.numel() for p in training.model.parameters()):,} parameters"
        live.say(
            f"{size}, on {processes.count} processes ({recipe.run.distributed})." if processes.count > 1 else f"{size}."
        )
        state = first_state(training, held)
        if state.update == training.plan.updates:
            live.say(f"All {state.update} updates are done.")
        elif state.update:
            live.say(f"Resuming after update {state.update} (started in {time.monotonic() - begun:.1f} s).")
        sinks = logs.open_sinks(recipe.run.sinks, folder, recipe, state.update) if processes.first else []
        log = logs.Log(
            folder / LOG, sinks, heading={"kind": "computing", "update": 0, **dataclasses.asdict(arithmetic)}
        )
        try:
            with Stopping() as stopping, live.shown(state.update, training.plan.updates):
                return train_from(state, training, log, stopping)
        finally:
            log.close()


def train_from(state: State, training: AssembledTraining, log: logs.Log, stopping: Stopping) -> TrainingOutcome:
    """The training loop, from a state to the last update or a signal."""
    run, plan, processes, live = training.recipe.run, training.plan, training.processes, training.live
    tally = Tally(state, processes)
    training.module.train()
    for update in range(state.update, plan.updates):
        nats, weight, norm = take_update(training, update)
        tally.add(nats, weight)
        done = update + 1
        last, stop = done == plan.updates, processes.any(stopping.signal != 0)
        state = dataclasses.replace(state, update=done, validation_loss=None)
        live.update(done)
        if last or done % run.log_every == 0:
            write_line(training, log, tally, update, norm)
        tally.pause()
        if last or due(run.evaluate_every, done):
            state = evaluate_state(state, training, log)
        if run.sample_every and (last or due(run.sample_every, done)):
            write_samples(training, log, done)
        if last or stop or due(run.save_every, done) or state.best_update == done:
            state = save_state(state, training, log, tally)
        tally.go_on()
        if stop:
            break
    return TrainingOutcome(
        updates=state.update,
        of=plan.updates,
        best_loss=state.best_loss,
        best_update=state.best_update,
        seconds=tally.seconds,
        signal=0 if state.update == plan.updates else stopping.signal or signal.SIGTERM,
    )


def take_update(training: AssembledTraining, update: int) -> tuple[Tensor, Tensor | float, Tensor]:
    """Do update `update` (from 0); returns this process's nats, all processes' weight, and the gradients' norm.

    The gradient is that of the update's summed nats divided by its total weight, however the update is divided into
    micro-batches and processes.
    """
    recipe, processes = training.recipe, training.processes
    share = rate_share(update, training.plan.updates, recipe.schedule)
    for group in training.optimizer.param_groups:
        group["lr"] = group["base_lr"] * share
    torch.manual_seed(seed_of(recipe.run.seed, update, processes.rank))
    inputs_BT, targets_BT = training.plan.share(update, processes)
    weights_B, weight = weigh_windows(training, inputs_BT)
    windows = len(inputs_BT)
    at_once = recipe.data.micro_windows or windows
    nats = torch.zeros((), dtype=torch.float64, device=processes.device)
    for start in range(0, windows, at_once):
        piece = slice(start, start + at_once)
        with exchanging(training.module, now=start + at_once >= windows):
            with computing(training.arithmetic.precision, processes.device):
                summed = training.module(
                    inputs_BT[piece], targets_BT[piece], None if weights_B is None else weights_B[piece]
                )
            # Wrapped modules average over processes, but the sum is needed.
            (summed * (processes.count / weight)).backward()
        nats += summed.detach()
    norm = clip_gradients(training)
    nats += 0 * norm  # weights that such gradients make must not be saved: the next sum of losses is not finite
    training.optimizer.step()
    training.optimizer.zero_grad()
    return nats, weight, norm


def weigh_windows(training: AssembledTraining, inputs_BT: Tensor) -> tuple[Tensor | None, Tensor | float]:
    """The weights of this process's windows, and the total weight of the whole update."""
    if not training.key_ids:
        return None, float(training.plan.tokens)
    weights_B = window_weights(inputs_BT, training.key_ids, training.recipe.loss.key_weight)
    return weights_B, training.processes.total(weights_B.sum(dtype=torch.float64) * inputs_BT.shape[1])


def write_line(training: AssembledTraining, log: logs.Log, tally: Tally, update: int, norm: Tensor) -> None:
    """Write a log line for the updates since the last one, up to and including this one (from 0).

    Raises:
        TrainwrightError: if the loss is no longer finite.
    """
    plan, recipe = training.plan, training.recipe
    nats, weight = tally.settled(training.processes)
    check_finite(nats, update + 1)
    updates, seconds = tally.taken()
    speed = updates * plan.tokens / max(seconds, 1e-9)
    training.live.update(update + 1, nats / weight, speed)
    if training.processes.first:
        share = rate_share(update, plan.updates, recipe.schedule)
        log.write(
            "train",
            update + 1,
            {
                "loss": nats / weight,
                "perplexity": perplexity_of(nats / weight),
                "learning_rate": share * recipe.optimizer.learning_rate,
                "gradient_norm": float(norm),
                "tokens": (update + 1) * plan.tokens,
                "seconds": round(tally.seconds, 3),
                "tokens_per_second": round(speed),
            },
        )


def evaluate_state(state: State, training: AssembledTraining, log: logs.Log) -> State:
    """The state with the new validation loss, and with the best one so far.

    Raises:
        TrainwrightError: if the loss is not finite.
    """
    if not len(training.validation):
        return state
    with uncompiled(training.loss):
        loss = mean_nats(
            training.loss,
            training.validation,
            training.processes,
            training.arithmetic.precision,
            limit=training.recipe.run.evaluate_windows,
        )
    check_finite(loss, state.update)
    better = state.best_loss is None or loss < state.best_loss
    training.live.say(
        f"update {state.update}  validation loss {loss:.4f}, perplexity {perplexity_of(loss):.2f}{', the lowest so far' if better else ''}"
    )
    if training.processes.first:
        log.write("evaluation", state.update, {"loss": loss, "perplexity": perplexity_of(loss)})
    state = dataclasses.replace(state, validation_loss=loss)
    return dataclasses.replace(state, best_loss=loss, best_update=state.update) if better else state


def write_samples(training: AssembledTraining, log: logs.Log, update: int) -> None:
    """Show and log the greedy completion of each prompt; draws no random numbers."""
    model, recipe = training.model, training.recipe
    if training.processes.count > 1 and recipe.run.distributed == "fsdp":
        tensors = whole(model.state_dict())  # a collective call
        if training.processes.first:
            model = Transformer(recipe.model)
            model.load_state_dict(tensors)
    if not training.processes.first:
        return
    with uncompiled(training.loss):
        completer = Completer(model.eval(), training.data.tokenizer)
        texts = {prompt: completer.complete(prompt) for prompt in recipe.run.prompts}
    model.train()
    for prompt, text in texts.items():
        training.live.say(f"  {prompt}{text}")
    log.write("samples", update, {"texts": texts})


def save_state(state: State, training: AssembledTraining, log: logs.Log, tally: Tally) -> State:
    """Write the state as a checkpoint, syncing the log first; returns the state.

    Raises:
        WriteError: if it cannot be written.
        TrainwrightError: if the loss is no longer finite, so that bad weights never replace good ones.
    """
    nats, weight = tally.settled(training.processes)
    check_finite(nats, state.update)
    state = dataclasses.replace(state, open_nats=nats, open_weight=weight, seconds=tally.seconds)
    model, optimizer = training.model.state_dict(), optimizer_tensors(training.optimizer)
    folder, processes, run = training.folder / CHECKPOINTS, training.processes, training.recipe.run
    in_shards = processes.count > 1 and run.distributed == "fsdp" and run.common_disk
    if not in_shards and (processes.first or run.distributed == "fsdp"):
        model, optimizer = whole(model), whole(optimizer)
    if processes.first:
        log.settle()
    if in_shards:
        passing = checkpoints.passing_folder(folder, state.update)
        with checkpoints.saving(folder, state) if processes.first else nullcontext():
            processes.given(0)  # the others wait for the folder
            sharded.write(passing / checkpoints.SHARDS, model, optimizer)
    elif processes.first:
        checkpoints.save(folder, state, model, optimizer)
    if processes.first:
        checkpoints.prune(folder, run.keep, state.best_update)
    return state


def check_finite(nats: float, update: int) -> None:
    """Raise TrainwrightError if a sum of losses, or a gradient on the way, is not finite."""
    if not math.isfinite(nats):
        raise TrainwrightError(
            f"The loss or a gradient is {nats} at update {update}: training has diverged. The earlier checkpoints are intact. "
            "Start over with a lower optimizer.learning_rate, a longer warm-up or optimizer.clip=1."
        )


def due(every: int, done: int) -> bool:
    """Whether an action that runs every N updates is due now; 0: never."""
    return every > 0 and done % every == 0


def clip_gradients(training: AssembledTraining) -> Tensor:
    """The norm of all gradients together, before clipping them to `optimizer.clip`."""
    limit = training.recipe.optimizer.clip or math.inf
    norm: Tensor = nn.utils.clip_grad_norm_(training.model.parameters(), limit)
    return norm.full_tensor() if isinstance(norm, DTensor) else norm
