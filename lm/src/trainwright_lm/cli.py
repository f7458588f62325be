"""`trainwright lm` and its commands. Command modules import nothing heavy at the top, so every --help is instant."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable
from typing import Any

from cyclopts import App

from trainwright_lm.commands.prepare import prepare
from trainwright_lm.commands.run import complete, evaluate, export, import_, push
from trainwright_lm.commands.train import train

app = App(
    name="lm",
    help="Train a code-completion language model from scratch: prepare, train, eval, complete, export.",
    help_epilogue="""Examples:

    trainwright lm prepare installed --out data      all Python packages in this environment
    trainwright lm train data --out run              preset tiny: minutes on two cores
    trainwright lm eval run
    trainwright lm complete run "import numpy as "
""",
    result_action="return_value",
)

# The packages of the `lm` extra in pyproject.toml.
PACKAGES = ("torch", "tokenizers", "tiktoken", "pyarrow", "xxhash", "rensa", "safetensors", "rapidfuzz",
            "huggingface_hub", "license_expression")  # fmt: skip
_NEEDS = 'trainwright lm needs additional packages: pip install "trainwright[lm]"'

# In the order in which they are used.
COMMANDS: dict[str, Callable[..., int | None]] = {
    "prepare": prepare,
    "train": train,
    "eval": evaluate,
    "complete": complete,
    "export": export,
    "import": import_,
    "push": push,
}


def _examples(function: Callable[..., int | None]) -> str:
    """The examples in a command's docstring."""
    return "Examples:\n" + inspect.cleandoc(function.__doc__ or "").partition("\nExamples:\n")[2]


def _with_its_packages(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Wrap a command so that it reports missing packages of the extra in one line."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> int | None:
        try:
            return function(*args, **kwargs)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in PACKAGES:
                raise
            print(f"{_NEEDS} (not installed: {', '.join(missing_packages())})", file=sys.stderr)
            return 2

    return command


def missing_packages() -> list[str]:
    """The packages of the extra that are not installed."""
    return [name for name in PACKAGES if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # hidden or partly uninstalled
        return False


for _place, (_name, _function) in enumerate(COMMANDS.items()):
    app.command(_with_its_packages(_function), name=_name, help_epilogue=_examples(_function), sort_key=_place)
