"""The names under which batches, data sets and models hold labels."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

# What models of transformers take labels as, and its collators give them as.
ARGUMENTS = ("labels", "label", "label_ids")
# What labels are called beside other inputs; where nothing else can be meant by it, they may be called y.
AMONG_INPUTS = (*ARGUMENTS, "targets", "target")
USUAL = (*AMONG_INPUTS, "y")
# Words for labels in the names of columns and variables.
_WORDS = frozenset(
    ["label", "labels", "target", "targets", "class", "classes", "category", "y", "sentiment", "rating", "ratings", "stars", "score", "answer", "gold", "tag", "tags", "intent", "emotion", "species", "diagnosis", "outcome"]
)  # fmt: skip


def find_label(names: Container[str], among: Iterable[str] = USUAL) -> str | None:
    """Which of a batch's names is the labels'."""
    return next((name for name in among if name in names), None)


def is_like_label(name: str) -> bool:
    """Whether a word in the name means label."""
    return any(word in _WORDS for word in re.split(r"[^a-z]+", name.lower()))
