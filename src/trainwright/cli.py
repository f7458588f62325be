"""The command line. Nothing here imports a framework: `--help` answers at once."""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import CycloptsError, Parameter
from cyclopts.types import ExistingDirectory
from rich.console import Console
from rich.text import Text

from trainwright import __version__
from trainwright.checking import check_program
from trainwright.console import take_everything
from trainwright.core.report import EXIT_INTERRUPTED
from trainwright.errors import TrainwrightError, UsageError
from trainwright.output import progress, read_targets, tell
from trainwright.start.command_line import Option, arrange_words
from trainwright.start.completion import CompletedApp
from trainwright.start.program import Program
from trainwright.start.scripts import program_of

if TYPE_CHECKING:
    from trainwright.options import Options

app = CompletedApp(
    name="trainwright",
    version=__version__,
    version_flags=["--version"],
    help="Run a training script before its long run, watch it, and name the first cause of a fault, with a proven fix.",
    help_epilogue="""Examples:

    trainwright check train.py --epochs 3      check train.py with its own arguments
    trainwright check --json report.json train.py
    trainwright check train.ipynb
    trainwright check -- torchrun --nproc_per_node 4 train.py --epochs 3
    trainwright bundle train.py                ask for help: a page to paste, and the smallest script
    trainwright run train.py                   check it; if there are no errors, train
    python train.py 2>&1 | trainwright explain -
""",
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # said in `main`
)

app.command("trainwright_lm.cli:app", name="lm", help="Train a code-completion language model from scratch.")
app.register_install_completion_command(
    help="Let your shell (bash, zsh, fish, PowerShell) complete commands and options."
)


def _option(name: str, told: str) -> Parameter:
    """An option without a `--no-` form."""
    return Parameter(name=name, negative=(), help=told)


def _target(name: str, what: str) -> Parameter:
    """An option that takes a file, or "-"."""
    return Parameter(name=name, allow_leading_hyphen=True, help=f'Write {what}; "-" is standard output.')


Ignore = Annotated[list[str] | None, _option("--ignore", "Name or code of a rule to silence; repeatable.")]
Select = Annotated[list[str] | None, _option("--select", "Name or code of a rule; only such rules report; repeatable.")]
Baseline = Annotated[str | None, _option("--baseline", "Leave out the findings of this file: they do not count.")]
WriteBaseline = Annotated[str | None, _target("--write-baseline", "the findings for --baseline of later checks")]
Budget = Annotated[
    float | None,
    Parameter(
        name="--budget",
        help="Time limit in seconds of the script's run, from its training's first step on; 120 without this.",
    ),
]
Seed = Annotated[int, Parameter(name="--seed", help="Random seed.")]
Device = Annotated[
    str,
    Parameter(
        name="--device",
        help="auto: if the script asks for a GPU and there is none, the CPU stands in, in fp32; "
        "cpu: the CPU stands in even if there is a GPU.",
    ),
]
Json = Annotated[str | None, _target("--json", "the report as JSON")]
Html = Annotated[str | None, _target("--html", "the report as an HTML page")]
Diff = Annotated[str | None, _target("--diff", "the edits of fixes in this folder as one patch (patch -p0 < FILE)")]
Format = Annotated[
    list[str] | None,
    _option(
        "--format",
        "text, json, sarif, github, junit or markdown: what standard output gets; text then goes to standard error. "
        "NAME=FILE writes it there. Repeatable.",
    ),
]
Repair = Annotated[
    bool,
    Parameter(name="--repair", negative="--no-repair", help="Fix faults in memory, to find what lies behind them."),
]
Verify = Annotated[
    bool,
    _option(
        "--verify",
        "Then apply the edits of all fixes to a copy of the source, run the copy in the script's place, "
        "and mark the fixes whose faults are gone as verified, unless something else broke. "
        "Takes about as long again.",
    ),
]
RequireLearning = Annotated[
    bool,
    _option(
        "--require-learning",
        "Exit with status 1 also if it was not shown that the training learns (not if it cannot be judged).",
    ),
]
Training = Annotated[int | None, Parameter(name="--training", help="Speak only of the script's N-th training.")]
Samples = Annotated[
    bool,
    Parameter(
        name="--samples",
        negative="--no-samples",
        help="Show single rows of the data in the reports; --no-samples where they may not be shown.",
    ),
]
Verbose = Annotated[bool, _option("--verbose", "Show all that was measured in the terminal, though nothing was found.")]
Module = Annotated[bool, _option("-m", "SCRIPT is the name of a module, as in python -m.")]
Script = Annotated[
    str,
    Parameter(
        help="The training script or notebook (a module with -m), or the command that starts it, such as torchrun train.py."
    ),
]
Tokens = Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]


@app.command(usage="Usage: trainwright check [OPTIONS] SCRIPT [ARGS…]")
def check(
    script: Script,
    /,
    *arguments: Tokens,
    m: Module = False,
    json: Json = None,
    html: Html = None,
    budget: Budget = None,
    seed: Seed = 0,
    ignore: Ignore = None,
    device: Device = "auto",
    repair: Repair = True,
    diff: Diff = None,
    format: Format = None,
    verify: Verify = False,
    require_learning: RequireLearning = False,
    training: Training = None,
    samples: Samples = True,
    verbose: Verbose = False,
    select: Select = None,
    baseline: Baseline = None,
    write_baseline: WriteBaseline = None,
) -> int:
    """Run a script and watch it; train nothing for real.

    The script runs unmodified in a process of its own, to its end or as far as the budget goes; what it
    writes is thrown away. A training that takes longer is cut short, and the script goes on behind it. The first
    updates of each training are looked at closely. A fault that can be mended in memory is, in a further run.
    Arguments after SCRIPT belong to the script. SCRIPT may be a notebook, or a command such as `accelerate launch
    train.py`, of which one process is checked.

    The report begins with a verdict: it learns (its answers for rows that it does not train on are better than a
    constant answer), it is broken, it does not learn, or whether it learns was not shown or cannot be judged.

    Exit status: 0 nothing new above a note; 1 findings, or the script failed; 2 wrong usage, no training
    reached, none of its steps measured, or an internal error in Trainwright; 130 interrupted before anything was found.
    """
    program = program_of(script, arguments, module=m)
    targets = read_targets(format, **{"json": json, "html": html, "diff": diff, "write-baseline": write_baseline})
    options = _options(program, budget, seed, ignore, repair)
    samples = samples and options.samples
    options = replace(options, device=device, training=training, samples=samples, verbose=verbose)
    options = replace(options, select=tuple(select or options.select), baseline=baseline)
    return check_program(program, targets, options, verify=verify, required=require_learning)


@app.command(usage="Usage: trainwright run [OPTIONS] SCRIPT [ARGS…]")
def run(
    script: Script,
    /,
    *arguments: Tokens,
    m: Module = False,
    json: Json = None,
    html: Html = None,
    budget: Budget = None,
    seed: Seed = 0,
    ignore: Ignore = None,
    format: Format = None,
) -> int:
    """Check a script's trainings; if no error is found, run it from its beginning, for real.

    It is then run as by `python script.py`, whose losses, weights and exit status are its own.
    """
    program = program_of(script, arguments, module=m)
    if program.launcher or program.script.endswith(".ipynb"):
        what = f"a {program.launcher} command" if program.launcher else "a notebook"
        raise UsageError(f"run trains only scripts that Python itself starts; for {what}, use trainwright check.")
    options = _options(program, budget, seed, ignore, True)
    return check_program(program, read_targets(format, json=json, html=html), options, train=True)


def _options(program: Program, budget: float | None, seed: int, ignore: list[str] | None, repair: bool) -> Options:
    """The options of a check."""
    from trainwright.options import DEFAULT_BUDGET, Options, with_settings

    options = Options(budget=DEFAULT_BUDGET, seed=seed, ignore=tuple(ignore or ()), repair=repair)
    options = with_settings(options, Path.cwd() / "x" if program.module else Path(program.script))
    return options if budget is None else replace(options, budget=budget)


@app.command(usage="Usage: trainwright bundle [OPTIONS] SCRIPT [ARGS…]")
def bundle(
    script: Script,
    /,
    *arguments: Tokens,
    output: Annotated[
        Path, Parameter(name="--output", help="The folder to write; an older bundle there is replaced, nothing else.")
    ] = Path("trainwright-bundle"),
    with_data: Annotated[
        bool, _option("--with-data", "Also the first rows of the data, and texts quoted from rows.")
    ] = False,
    limit: Annotated[
        float, Parameter(name="--limit", help="Time limit in seconds for the search of the smallest script.")
    ] = 300.0,
    budget: Budget = None,
    seed: Seed = 0,
    ignore: Ignore = None,
) -> int:
    """Check a script, and put what others need to help into a folder: a page to paste, and the smallest script.

    The page has what was found, the smallest script that shows the same (made-up values of the same shapes and types;
    verified by being run), whose fault it looks like, where to post it, versions and devices.
    Secrets, names of users and machines, absolute paths and values of rows are left out. Read it before you post it.

    Exit status: 0 the folder was written; 2 wrong usage, or the check made no report.
    """
    from trainwright.bundling import bundle_program

    program = program_of(script, arguments, module=False)
    options = _options(program, budget, seed, ignore, True)
    with progress() as say:
        return bundle_program(program, output, options, seconds=limit, with_data=with_data, say=say)


@app.command
def explain(
    what: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help='A rule\'s name or code, an error message, a traceback, a complaint in words ("loss is nan"), words to '
            "look for, or - for a traceback or log on standard input.",
        ),
    ],
    /,
) -> int:
    """Explain an error message or a traceback, print a rule's page, or find the rules for a complaint or some words."""
    from trainwright.explain.answer import explain as answer

    text = sys.stdin.read() if what == "-" else what
    if not text.strip():
        raise UsageError("name what to explain; standard input was empty." if what == "-" else "name what to explain.")
    found, shown = answer(text)
    Console().print(shown)
    return 0 if found else 1


@app.command(usage="Usage: trainwright mcp [--no-samples] [FOLDER…]")
def mcp(*folders: ExistingDirectory, samples: Samples = True) -> int:
    """Let coding assistants check scripts in these folders (the working folder), over the Model Context Protocol."""
    try:
        from trainwright.mcp.server import make_server
    except ModuleNotFoundError as error:
        raise UsageError('trainwright mcp needs an additional package: pip install "trainwright[mcp]"') from error
    make_server(folders or (Path.cwd(),), samples=samples).run()
    return 0


@app.command
def rules(*, json: Annotated[bool, _option("--json", "As JSON, on standard output.")] = False) -> int:
    """List all rules."""
    from trainwright.explain.shown import every_rule, every_rule_as_json

    sys.stdout.write(every_rule_as_json()) if json else Console().print(every_rule())
    return 0


def main() -> None:
    """The entry point: sets the exit status and shows our own errors as one line."""
    take_everything()
    try:
        words, said = arrange_words(sys.argv[1:], options_of)
        tell(said)
        status = app(words, exit_on_error=False)
    except CycloptsError:  # shown by cyclopts
        sys.exit(2)
    except TrainwrightError as error:
        Console(stderr=True).print(Text.assemble(("trainwright: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        tell("interrupted.")
        sys.exit(EXIT_INTERRUPTED)
    except Exception:
        traceback.print_exc()
        tell("this is an internal error in Trainwright, not a fault of your script. Please report it.")
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


def options_of(command: str) -> list[Option]:
    """The options that a command takes, by each of their names."""
    return [
        Option(name=name, takes_value=argument.token_count()[0] > 0)
        for argument in app[command].assemble_argument_collection()
        for name in argument.names
        if name.startswith("-")
    ]
