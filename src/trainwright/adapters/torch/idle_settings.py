"""Settings of a model's configuration that change nothing of the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def idle_settings(models: Iterable[Any]) -> tuple[str, ...]:
    """Each in a few words.

    GPT-2 once had `n_ctx` beside `n_positions`; only the latter sizes the table of positions.
    """
    found: list[str] = []
    for model in models:
        config = getattr(model, "config", None)
        context, positions = getattr(config, "n_ctx", None), getattr(config, "n_positions", None)
        if (
            getattr(config, "model_type", "") != "gpt2"
            or not isinstance(context, int)
            or not isinstance(positions, int)
        ):
            continue
        if context != positions:
            found.append(f"n_ctx={context:,} changes nothing: n_positions sizes the model, and is {positions:,}")
    return tuple(found)
