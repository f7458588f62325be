"""Caches of what was downloaded: what arrives there is kept, as after any run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Environment variable, folder below home.
_DOWNLOADS = (("HF_HUB_CACHE", ".cache/huggingface/hub"), ("TORCH_HOME", ".cache/torch"), ("KERAS_HOME", ".keras"))


def download_folders() -> Iterator[Path]:
    """Those caches that can be written to."""
    for variable, below in _DOWNLOADS:
        folder = Path(os.environ.get(variable) or Path.home() / below)
        if folder.is_dir() and os.access(folder, os.W_OK):
            yield folder.resolve()
