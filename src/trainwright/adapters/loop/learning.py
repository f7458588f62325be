"""Fresh batches of a loop, and its evaluation rows as the loop's own batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainwright.adapters.loop.batches import drawing
from trainwright.adapters.loop.turn import Turn
from trainwright.adapters.torch.learning import TorchLearner, row_digests, taken_batches, with_rows
from trainwright.core.repair import Seam
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.isolation.silence import muted
from trainwright.seams.listening.seen import quiet
from trainwright.seams.state.snapshot import seed_everything

if TYPE_CHECKING:
    from trainwright.adapters.loop.training import LoopTraining

# A body that draws its batches itself is run up to its loss to see their rows.
MOST_DRAWN = 64
# The numbers of the batches at hand are below this.
FIRST_NUMBER = 10_000


class LoopLearner(TorchLearner):
    """A loop's turns as batches."""

    training: LoopTraining

    def __init__(self, training: LoopTraining) -> None:
        self.training = training
        self._turns = 0

    @property
    def window(self) -> int:
        return self.training.rounds

    def fresh(self, most: int, seconds: float) -> list[Turn]:
        training = self.training
        if training.body.draws:
            most = min(most, MOST_DRAWN)
        with drawing(training):
            items = taken_batches(training.body.items(), most, seconds)
        silent = {n for n in training.silent if n < len(training.items)}
        if training.body.draws:
            return [Turn(n, item=item) for n, item in enumerate(items) if n not in silent]
        return [self._turn(item) for n, item in enumerate(items) if n not in silent]

    def _turn(self, item: Any) -> Turn:
        """A turn with a number of its own. Repairs of batches need its view, which only untrained weights allow."""
        self._turns += 1
        turn = Turn(FIRST_NUMBER + self._turns, item=item)
        if any(r.seam == Seam.BATCH for r in self.training.active.all):
            with tolerated():
                self.training.view(turn)
        return turn

    def held_out(self, rows: int, seconds: float) -> list[Turn]:
        training = self.training
        if training.body.draws or not training.items:
            return []
        for _, loader in training.evaluation_loaders():
            found: list[Turn] = []
            with tolerated(), quiet(), muted():
                seed_everything(1)
                for batch in taken_batches(iter(loader), rows, seconds):
                    found.append(self._turn(training.body.with_batch(training.items[0], batch)))
                    rows -= len(row_digests(batch) or ())
                    if rows <= 0:
                        break
            if found:
                return found
        return []

    def digests(self, turn: Turn) -> list[int] | None:
        training = self.training
        if not training.body.draws:
            return row_digests(training.body.batch_of(turn.item))
        with tolerated():
            return row_digests(training.view(turn))
        return None

    def chosen_rows(self, turn: Turn, rows: Sequence[int]) -> Turn:
        body = self.training.body
        if body.draws:
            return self.training.chosen_rows(turn, rows)
        batch = body.batch_of(turn.item)
        return self._turn(body.with_batch(turn.item, with_rows(batch, rows, len(row_digests(batch) or ()))))
