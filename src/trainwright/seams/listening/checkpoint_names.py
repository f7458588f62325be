"""Names of a loaded state dict compared with the model's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from trainwright.core import Place
from trainwright.stages import UnmatchedCheckpoint

# Below this share of the names, on both sides, nothing that matters was loaded.
HARDLY_ANY = 0.1
FEWEST_TENSORS = 2
# Wrappers and submodules put this many names before the others.
DEEPEST = 3


def unmatched_checkpoint(model: Any, state: Any, result: Any, where: Place) -> UnmatchedCheckpoint | None:
    """What was loaded without strictness, if hardly any name matched; None if enough did, or it cannot be told.

    Args:
        result: what `load_state_dict` returned.
    """
    unexpected = getattr(result, "unexpected_keys", None)
    if unexpected is None or not isinstance(state, Mapping):
        return None
    given, own = [str(k) for k in state], list(model.state_dict())
    matched = len(given) - len(unexpected)
    if len(given) < FEWEST_TENSORS or not own or matched > HARDLY_ANY * min(len(given), len(own)):
        return None
    prefix, renamed, would_match = _replacement(given, own)
    return UnmatchedCheckpoint(
        model=type(model).__name__,
        tensors=len(given),
        matched=matched,
        expected=len(own),
        example=given[0],
        wanted=own[0],
        prefix=prefix,
        renamed=renamed,
        would_match=would_match if would_match > matched else 0,
        where=where,
    )


def _replacement(given: Iterable[str], own: Iterable[str]) -> tuple[str, str, int]:
    """The beginning of the given names, and what must stand there for most of them to be the model's."""
    ours = _rests(own)
    found = [
        (len(rests & others), -len(prefix) - len(other), prefix, other)
        for prefix, rests in _rests(given).items()
        for other, others in ours.items()
    ]
    count, _, prefix, renamed = max(found, default=(0, 0, "", ""))
    return prefix, renamed, count


def _rests(names: Iterable[str]) -> dict[str, set[str]]:
    """By each beginning of up to DEEPEST parts, with its dot: what follows it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        parts = name.split(".")
        for depth in range(min(DEEPEST, len(parts) - 1) + 1):
            found["".join(f"{part}." for part in parts[:depth])].add(".".join(parts[depth:]))
    return found
