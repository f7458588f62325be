"""Trainwright walks a training pipeline before the long run and names the first cause of failure."""

from __future__ import annotations

__version__ = "0.1.0"
