"""The line that builds the configuration of a model whose sizes such an object sets, as those of transformers."""

from __future__ import annotations

from typing import Any

from trainwright.core import Place
from trainwright.seams.source.places import is_users, show
from trainwright.seams.source.written import names_read, only_call


def config_place(model: Any, file: str) -> dict[str, Place]:
    """The only line that builds it, in a file that loads no checkpoint."""
    config = getattr(model, "config", None)
    if config is None or "from_pretrained" in names_read(file) or not is_users(file):
        return {}
    line = only_call(file, type(config).__name__)
    return {"config": Place(show(file), line)} if line else {}


def configured_labels(model: Any) -> int | None:
    """The number of classes in a model's configuration; None: it has no such setting."""
    found = getattr(getattr(model, "config", None), "num_labels", None)
    return found if isinstance(found, int) else None
