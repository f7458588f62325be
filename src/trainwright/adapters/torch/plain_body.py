"""What bodies of a training loop have in common whose items are the batches, and whose step keeps its state in objects."""

from __future__ import annotations

from typing import Any

from trainwright.core.finding import Place


class PlainBody:
    """The trivial part of `adapters.loop.body.Body`."""

    draws = False
    keeps_draw = False
    clears_between_passes = False

    def item(self, drawn: Any, count: int) -> Any:
        """The batch itself; a body that counts its rounds does so by itself."""
        return drawn

    def rounds_left(self, count: int) -> int | None:
        """Unknown: its rounds go on from one pass to the next."""
        return None

    def batch_of(self, drawn: Any) -> Any:
        """The batch itself."""
        return drawn

    def with_batch(self, drawn: Any, batch: Any) -> Any:
        """The other batch."""
        return batch

    def variables(self) -> dict[str, Any]:
        """Empty: there are no variables."""
        return {}

    def place_of_variable(self, name: str) -> Place | None:
        """None: there are no variables."""
        return None

    def keep(self) -> None:
        """Does nothing: there are no variables."""
