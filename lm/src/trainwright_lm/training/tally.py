"""Accumulates loss and time of updates between lines of the log."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from trainwright_lm.runs.checkpoint import State
from trainwright_lm.training.processes import Processes


class Tally:
    """Loss and time of the updates since the last line of the log."""

    def __init__(self, state: State, processes: Processes) -> None:
        self._nats: Tensor | float = state.open_nats if processes.first else 0.0
        self._weight: Tensor | float = state.open_weight
        self._updates = 0
        self._window_seconds = 0.0
        self._going = time.perf_counter()
        self.seconds = state.seconds

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
        updates, seconds = self._updates, self._window_seconds
        self._nats = self._weight = 0.0
        self._updates, self._window_seconds = 0, 0.0
        self.go_on()
        return updates, seconds

    def pause(self) -> None:
        """Stop the clock: what follows is not training."""
        seconds = time.perf_counter() - self._going
        self._window_seconds += seconds
        self.seconds += seconds
        self._going += seconds

    def go_on(self) -> None:
        """Restart the clock."""
        self._going = time.perf_counter()
