"""Which windows an update trains on: a function of its number alone, so resuming needs no skipping or saved state."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainwright.errors import UsageError
from trainwright_lm.config import Recipe
from trainwright_lm.tokens.pack import TokenFile, Windows, order
from trainwright_lm.training.optimizers import rate_share
from trainwright_lm.training.processes import Processes

# Beyond about 16 epochs, repeating the same tokens hardly helps (Muennighoff et al., arXiv 2305.16264).
MOST_PASSES = 16
# An order of 16 million windows takes a second and 134 MB; the current epoch's is cached, and the next's at its end.
_order = functools.lru_cache(maxsize=2)(lambda count, seed, epoch: order(count, seed=seed, epoch=epoch))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The windows of each update: the orders of epochs 0, 1, … in sequence."""

    windows: Windows
    seed: int
    at_once: int
    """Windows per update."""
    updates: int

    def indices(self, update: int) -> np.ndarray:
        """The windows of an update (from 0); at an epoch's end, the next epoch's first windows fill it up."""
        count = len(self.windows)
        places = np.arange(update * self.at_once, (update + 1) * self.at_once)
        indices = np.empty(self.at_once, dtype=np.int64)
        for epoch in np.unique(places // count):
            here = places // count == epoch
            indices[here] = _order(count, self.seed, int(epoch))[places[here] % count]
        return indices

    def share(self, update: int, processes: Processes) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of this process in an update, on its device."""
        own = np.array_split(self.indices(update), processes.count)[processes.rank]
        rows = torch.from_numpy(self.windows.batch(own))
        if processes.device.type == "cuda":
            rows = rows.pin_memory()
        rows = rows.to(processes.device, non_blocking=True)
        return rows[:, :-1], rows[:, 1:]

    @property
    def much_repeated(self) -> str:
        """A warning, with a remedy, if the windows are repeated too often to help; otherwise ""."""
        passes = self.updates * self.at_once / len(self.windows)
        if passes <= MOST_PASSES:
            return ""
        enough = max(1, MOST_PASSES * len(self.windows) // self.at_once)
        return (
            f"{self.updates:,} updates go over the {len(self.windows):,} windows {passes:,.0f} times: so little code is "
            f"memorized. Prepare more, or end sooner: --set run.updates={enough}."
        )

    @property
    def tokens(self) -> int:
        """Targets per update."""
        return self.at_once * self.windows.context


def make_plan(tokens: TokenFile, recipe: Recipe, processes: Processes) -> Plan:
    """Make the plan of a recipe.

    Raises:
        UsageError: if the recipe does not fit the data or the processes, or its warm-up does not end.
    """
    windows = Windows(tokens, recipe.model.context, recipe.data.packing, recipe.data.limit)
    at_once = recipe.data.windows
    if not len(windows):
        raise UsageError(
            f"The data must hold a window of model.context + 1 = {recipe.model.context + 1} tokens; it has none. "
            "Prepare more, lower model.context, or use data.packing=join."
        )
    if at_once > len(windows):
        raise UsageError(
            f"data.windows must be at most what the data have, {len(windows)} windows of {recipe.model.context} tokens; got {at_once}. "
            "Lower it, or prepare more."
        )
    if at_once % processes.count:
        raise UsageError(f"data.windows must be a multiple of the processes; got {at_once} and {processes.count}.")
    updates = recipe.run.updates or max(1, int(recipe.run.epochs * len(windows) / at_once))
    rate_share(0, updates, recipe.schedule)
    return Plan(windows=windows, seed=recipe.run.seed, at_once=at_once, updates=updates)


def seed_of(seed: int, update: int, rank: int) -> int:
    """The seed of an update's random numbers (dropout) in one process."""
    return int(np.random.SeedSequence((seed, update, rank)).generate_state(1, np.uint64)[0] >> 1)
