"""What a loader's sampler draws rows by: weights, by row and by class, or a list of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch.utils.data import SubsetRandomSampler, WeightedRandomSampler

from trainwright.probes.splits.two_sets import values_of
from trainwright.stages.dataset import MOST_CLASSES, SamplerFacts, Split, SplitFacts

# The samplers of torch, accelerate and transformers that leave no row out.
_OF_ALL_ROWS = (
    "RandomSampler",
    "SequentialSampler",
    "SeedableRandomSampler",
    "LengthGroupedSampler",
    "DistributedSampler",
)


def sampler_of(loader: Any) -> Any:
    """The sampler that a loader's rows are drawn by; None if it has none."""
    return getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)


def sampler_facts(loader: Any, split: Split, facts: SplitFacts, others: Iterable[Any] = ()) -> SamplerFacts | None:
    """The facts of torch's samplers that have a weight for each row, or a list of rows; None for others.

    Args:
        others: the script's other loaders, which may read the rows that this one leaves out.
    """
    sampler = sampler_of(loader)
    if sampler is None:
        return None
    alone = not any(o is not loader and o.dataset is loader.dataset for o in others)
    if type(sampler) is SubsetRandomSampler and facts.rows is not None:
        rows = [int(row) for row in sampler.indices]
        return SamplerFacts(drawable=len(set(rows)) if alone else 0, draws=len(rows))
    if not isinstance(sampler, WeightedRandomSampler) or sampler.weights.dim() != 1 or facts.rows is None:
        return None
    weights = sampler.weights
    return SamplerFacts(
        weights=len(weights),
        drawable=int((weights > 0).sum()) if alone else 0,
        draws=sampler.num_samples,
        by_class=_by_class(weights.double().numpy(), split, facts),
    )


def _by_class(weights: np.ndarray, split: Split, facts: SplitFacts) -> dict[int, float]:
    """The weight of each class; empty if the rows of a class have several, or the labels are no classes."""
    labels = facts.labels
    if labels is None or labels.kind != "class" or len(weights) != facts.rows:
        return {}
    found = values_of(split, labels.column, range(len(weights)))
    if found is None or found.shape[1] != 1:
        return {}
    classes = np.unique(found[:, 0])
    one_each = {int(c): np.unique(weights[found[:, 0] == c]) for c in classes[: MOST_CLASSES + 1]}
    same = len(classes) <= MOST_CLASSES and all(len(w) == 1 for w in one_each.values())
    return {c: float(w[0]) for c, w in one_each.items()} if same else {}


def draws_every_row(loader: Any) -> bool:
    """Whether a loader's own sampler draws each row of its data set once per epoch."""
    kind = type(sampler_of(loader))
    batches = type(getattr(loader, "batch_sampler", None)).__name__
    return kind.__name__ in _OF_ALL_ROWS and batches in ("BatchSampler", "BatchSamplerShard", "NoneType")
