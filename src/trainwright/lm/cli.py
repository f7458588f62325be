"""`trainwright lm`: its commands by name. Each one's module is imported when it is called, or its own help is asked for."""

from __future__ import annotations

from cyclopts import App

# Each command's function lies in the module of commands/ with the same name.
_COMMANDS = {
    (
        "prepare",
        "prepare",
    ): "Gather, filter, deduplicate and split source code; train a tokenizer; pack tokens.",
    ("train", "train"): "Train a model from scratch on prepared data, or go on with a run that was stopped.",
    ("eval", "evaluate"): "Loss, perplexity, bits per byte, and how well whole lines are completed.",
    ("complete", "complete"): "Complete a line of code.",
    ("export", "export"): "Write a run as a folder that transformers opens, with a model card.",
    ("import", "import_"): "Make a run of a folder that transformers wrote.",
    ("push", "push"): "Put an exported run on the Hub.",
}

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

for (_name, _function), _help in _COMMANDS.items():
    app.command(f"trainwright.lm.commands.{_function}:{_function}", name=_name, help=_help)
