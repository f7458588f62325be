"""`trainwright lm`: its commands. Their modules import nothing heavy at their heads, so that every --help answers at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from cyclopts import App

from trainwright.lm.commands.complete import complete
from trainwright.lm.commands.evaluate import evaluate
from trainwright.lm.commands.export import export
from trainwright.lm.commands.import_ import import_
from trainwright.lm.commands.prepare import prepare
from trainwright.lm.commands.push import push
from trainwright.lm.commands.train import train

app = App(
    name="lm",
    help="Train a code-completion language model from scratch: prepare, train, eval, complete, export.",
    help_epilogue="""Examples:

    trainwright lm prepare installed --out data      the Python packages of this environment
    trainwright lm train data --out run              preset tiny: minutes on two cores
    trainwright lm eval run
    trainwright lm complete run "import numpy as "
""",
    result_action="return_value",
)

# In the order of the work.
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
    """What a command's docstring shows as examples."""
    return "Examples:\n" + inspect.cleandoc(function.__doc__ or "").partition("\nExamples:\n")[2]


for _place, (_name, _function) in enumerate(COMMANDS.items()):
    app.command(_function, name=_name, help_epilogue=_examples(_function), sort_key=_place)
