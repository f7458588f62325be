"""What a loader's sampler draws rows by: the weights of a WeightedRandomSampler, by row and by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch.utils.data import WeightedRandomSampler

from trainwright.probes.splits.two_sets import values_of
from trainwright.stages.dataset import MOST_CLASSES, SamplerFacts, Split, SplitFacts


def sampler_of(loader: Any) -> Any:
    """The sampler that a loader's rows are drawn by; None if it has none."""
    return getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)


def sampler_facts(loader: Any, split: Split, facts: SplitFacts) -> SamplerFacts | None:
    """The facts of torch's sampler that has a weight for each row; None for others."""
    sampler = sampler_of(loader)
    if not isinstance(sampler, WeightedRandomSampler) or sampler.weights.dim() != 1 or facts.rows is None:
        return None
    weights = sampler.weights
    return SamplerFacts(weights=len(weights), by_class=_by_class(weights.double().numpy(), split, facts))


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
