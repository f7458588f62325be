"""A DataLoader: the user's lines that built it and its parts, and what its sampler draws rows by."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch.utils.data import IterableDataset, WeightedRandomSampler

from trainwright.core import Place
from trainwright.probes.splits.two_sets import values_of
from trainwright.seams.listening.seen import BuiltObjects, Construction
from trainwright.seams.source.places import definition_place
from trainwright.seams.source.written import assignment_place, call_node, keyword_places
from trainwright.stages import MOST_CLASSES, Split, SplitFacts

# The report's names for the parts of a DataLoader, by argument name.
_LOADER_ROLES = {"dataset": "train_dataset", "collate_fn": "collator"}


def keywords_of(built: Construction) -> dict[str, Place]:
    """The lines of the keyword arguments of a call that built something."""
    written = keyword_places(built.frame_file, built.line, built.name, end=built.end)
    return {k: place for k, (place, _) in written.items()}


def loader_places(loader: Any, seen: BuiltObjects) -> dict[str, Place]:
    """The lines where a loader, its data set and its collate function were written."""
    places: dict[str, Place] = {}
    if (collator := definition_place(loader.collate_fn)) is not None:
        places["collator"] = collator
    built = seen.loaders.get(id(loader.dataset))
    if built is None:
        return places
    places["loader"] = built.place
    for name, place in keywords_of(built).items():
        places.setdefault(_LOADER_ROLES.get(name, name), place)
    call = call_node(built.frame_file, built.line, built.name, end=built.end)
    first = call.args[0] if call is not None and call.args else None
    name = getattr(first, "id", "")
    if name and (made := assignment_place(built.frame_file, name, built.line)):
        places |= {"train_dataset_made": made, "train_dataset": made}
    places.setdefault("train_dataset", built.place)
    places.setdefault("collator", built.place)
    return places


def sampler_of(loader: Any) -> Any:
    """The sampler that a loader's rows are drawn by; None if it has none."""
    return getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)


def sampler_weights(loader: Any, split: Split, facts: SplitFacts) -> dict[int, float]:
    """The weight by which a loader's sampler draws the rows of each class.

    Empty if it has none, if the rows of a class have several, or if the labels are no classes.
    """
    sampler, labels = sampler_of(loader), facts.labels
    if not isinstance(sampler, WeightedRandomSampler) or sampler.weights.dim() != 1:
        return {}
    weights = sampler.weights.double().numpy()
    if labels is None or labels.kind != "class" or len(weights) != facts.rows:
        return {}
    found = values_of(split, labels.column, range(len(weights)))
    if found is None or found.shape[1] != 1:
        return {}
    classes = np.unique(found[:, 0])
    one_each = {int(c): np.unique(weights[found[:, 0] == c]) for c in classes[: MOST_CLASSES + 1]}
    same = len(classes) <= MOST_CLASSES and all(len(w) == 1 for w in one_each.values())
    return {c: float(w[0]) for c, w in one_each.items()} if same else {}


def is_shuffling(loader: Any) -> bool | None:
    """Whether a loader draws rows in another order than its set has them; None if that cannot be determined.

    An iterable set is read as training reads it, including its own shuffling.
    """
    if loader is None:
        return None
    if isinstance(getattr(loader, "dataset", None), IterableDataset):
        return False
    kind = type(sampler).__name__ if (sampler := sampler_of(loader)) is not None else ""
    if not kind or "Iterable" in kind or "Infinite" in kind:
        return None
    return "Sequential" not in kind
