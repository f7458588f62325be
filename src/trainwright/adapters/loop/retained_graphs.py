"""Whether the memory that an evaluation keeps grows with each batch: measured on passes of two lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwright.adapters.loop.evaluation import Seen
    from trainwright.adapters.loop.training import LoopTraining


def retained_graphs(training: LoopTraining, seen: Seen, longer: Callable[[], Seen]) -> dict[str, Any]:
    """The fields of EvaluationFacts on graphs of evaluated batches that are alive at the same time.

    What a script keeps of a few batches, to show them, does not grow with the length of the pass.

    Args:
        longer: evaluates twice as many batches.
    """
    held, of = _held(seen)
    if len(held) < 2 or len(held) < of:
        return {}
    again = longer()
    further, of_further = _held(again)
    more = len(further) - len(held)
    # The last batch's graph lives in the loop's variables: each of the further batches must have stayed.
    if again.late or again.error is not None or more < of_further - of:
        return {}
    others = [v for v in seen.loaders if not any(v is known for known in training.loaders)]
    lengths = [len(v) for v in others if hasattr(v.dataset, "__len__")]
    return {
        "kept_graphs": len(further),
        "kept_of_fewer": len(held),
        "graph_bytes": (sum(further) - sum(held)) // more if more > 0 else max(held),
        "loader_batches": max(lengths, default=None),
    }


def _held(seen: Seen) -> tuple[list[int], int]:
    """The bytes of each graph of an evaluated batch that was alive at the end of the first pass, of how many batches."""
    found = [c for c in seen.watch.evaluations() or seen.watch.evaluations(sure=False) if c.turn == 0]
    return [size for c, size in seen.kept if any(c is e for e in found)], len(found)
