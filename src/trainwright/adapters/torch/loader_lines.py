"""The user's lines that built a DataLoader and its parts."""

from __future__ import annotations

from typing import Any

from trainwright.core import Place
from trainwright.seams.listening.seen import BuiltObjects, Construction
from trainwright.seams.source.places import definition_place
from trainwright.seams.source.written import assignment_place, call_node, keyword_places

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
