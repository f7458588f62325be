"""Loss and time of a training's updates, from one line of the log to the next."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from trainwright.lm.runs.checkpoint import State
from trainwright.lm.training.processes import Processes


class Tally:
    """Loss and time of the updates that the log has no line of yet."""

    def __init__(self, state: State, processes: Processes) -> None:
        self._nats: Tensor | float = state.open_nats if processes.first else 0.0
        self._weight: Tensor | float = state.open_weight
        self._updates = 0
        self._window_seconds = 0.0
        self._going = time.perf_counter()
        self.seconds = state.seconds

    def add(self, nats: Tensor, weight: Tensor | float) -> None:
        """An update's."""
        self._nats, self._weight, self._updates = nats + self._nats, weight + self._weight, self._updates + 1

    def settled(self, processes: Processes) -> tuple[float, float]:
        """All processes' nats, and their weight; from here on the first process holds the sum."""
        nats = torch.as_tensor(self._nats, dtype=torch.float64, device=processes.device)
        total = processes.total(nats.clone()).item()
        self._nats, self._weight = total if processes.first else 0.0, float(self._weight)
        return total, self._weight

    def taken(self) -> tuple[int, float]:
        """Updates of this session and their seconds since the last line; a new line begins."""
        self.pause()
        updates, seconds = self._updates, self._window_seconds
        self._nats = self._weight = 0.0
        self._updates, self._window_seconds = 0, 0.0
        self.go_on()
        return updates, seconds

    def pause(self) -> None:
        """What follows is no training."""
        seconds = time.perf_counter() - self._going
        self._window_seconds += seconds
        self.seconds += seconds
        self._going += seconds

    def go_on(self) -> None:
        """Training goes on."""
        self._going = time.perf_counter()
