"""Keeps what the user's code would print or write to itself, while the walk runs it for a look."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

_WRITING = frozenset("wax+")
# Calls that make, move or delete files: module, owner in it ("" for the module itself), names. Checkpoints are written
# by native code (safetensors) or into folders that were not made, and rotated by deleting older ones; trackers send.
_SILENT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("os", "", ("mkdir", "remove", "unlink", "rmdir", "rename", "replace", "symlink", "link")),
    ("shutil", "", ("rmtree", "move", "copy", "copy2", "copyfile", "copytree", "make_archive")),
    ("torch", "", ("save",)),
    ("safetensors.torch", "", ("serialize_file",)),
    ("accelerate.accelerator", "Accelerator", ("save_state", "save_model", "save", "log", "log_images",
                                               "init_trackers", "end_training")),
    ("transformers.modeling_utils", "PreTrainedModel", ("save_pretrained", "push_to_hub")),
    ("transformers.configuration_utils", "PreTrainedConfig", ("save_pretrained",)),
    ("transformers.tokenization_utils_base", "PreTrainedTokenizerBase", ("save_pretrained", "push_to_hub")),
)  # fmt: skip


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Nothing is printed, and no file or folder is written, moved or deleted through the calls that scripts make for it."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(_replaced(builtins, "open", _reading_only(builtins.open)))
        stack.enter_context(_replaced(io, "open", _reading_only(io.open)))
        for module, owner, names in _SILENT:
            found: Any = sys.modules.get(module)
            if found is not None and owner:
                found = getattr(found, owner, None)
            for name in names:
                if found is not None and hasattr(found, name):
                    stack.enter_context(_replaced(found, name, lambda *args, **kwargs: None))
        yield


def _reading_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def open_for_reading(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if _WRITING & set(mode) and not isinstance(file, int):
            return original(os.devnull, mode.replace("x", "w"), *args, **kwargs)
        return original(file, mode, *args, **kwargs)

    return open_for_reading


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    inherited = isinstance(owner, type) and name not in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
