"""A call of fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass(frozen=True, kw_only=True)
class FitCall:
    """One call of `fit`: the model, the arguments by name, and where it stands."""

    model: Any
    given: Mapping[str, Any]
    frame: FrameType
