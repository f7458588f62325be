"""One of fit's batches: inputs, targets and weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.nested_values import count_rows, leaves, name_arrays, replace_arrays
from trainwright.adapters.keras.input.sources import split_rows

# Names for arrays that have none of their own: fit's argument names.
X, Y, WEIGHT = "x", "y", "sample_weight"


@dataclass(frozen=True, kw_only=True)
class FitBatch:
    """One batch in NumPy, in the structure that the model receives."""

    x: Any
    y: Any = None
    sample_weight: Any = None

    @property
    def rows(self) -> int:
        """The number of rows; 1 for a single row without a batch axis."""
        return 1 if self.is_row else count_rows([self.x, self.y]) or 0

    @property
    def is_row(self) -> bool:
        """Whether one of its values has no row axis."""
        return any(not np.ndim(a) for a in (*leaves(self.x), *leaves(self.y)))

    @property
    def weighs_nothing(self) -> bool:
        """Whether every row has weight 0 in the loss."""
        weights = [np.asarray(w) for w in leaves(self.sample_weight)]
        return bool(weights) and not any(w.any() for w in weights)

    def view(self) -> dict[str, Any]:
        """Its arrays by name: dictionary keys, otherwise x, y, sample_weight, with [i] in lists."""
        taken = dict(name_arrays(self.x, X))
        for root, part in ((Y, self.y), (WEIGHT, self.sample_weight)):
            taken |= {_free(n, root, taken): a for n, a in name_arrays(part, root)}
        return taken

    def renewed(self, view: Mapping[str, Any]) -> FitBatch:
        """The batch with a view's arrays: missing ones are dropped, new ones are added to a dictionary of inputs.

        A new `y` or `sample_weight` becomes the target or weight of a batch that has none.
        """
        taken = dict(name_arrays(self.x, X))
        x = replace_arrays(self.x, X, view)
        known = set(taken)
        parts = []
        for root, part in ((Y, self.y), (WEIGHT, self.sample_weight)):
            own = {n: _free(n, root, taken) for n, _ in name_arrays(part, root)}
            known |= set(own.values())
            taken |= dict.fromkeys(own.values())
            parts.append(replace_arrays(part, root, {n: view[key] for n, key in own.items() if key in view}))
        y = parts[0] if self.y is not None or Y in known else view.get(Y)
        weight = parts[1] if self.sample_weight is not None or WEIGHT in known else view.get(WEIGHT)
        if isinstance(x, dict):
            known |= {Y} if self.y is None else set()
            known |= {WEIGHT} if self.sample_weight is None else set()
            x = {**x, **{k: v for k, v in view.items() if k not in known}}
        return FitBatch(x=x, y=y, sample_weight=weight)


def _free(name: str, root: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else f"{root}.{name}"


def rows_of_batch(batch: FitBatch) -> Iterator[FitBatch]:
    """The rows of a batch."""
    for x, y, weight in split_rows((batch.x, batch.y, batch.sample_weight)):
        yield FitBatch(x=x, y=y, sample_weight=weight)
