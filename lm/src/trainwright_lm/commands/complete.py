"""`trainwright lm complete`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def complete(
    run: Path,
    prompt: Annotated[str, Parameter(allow_leading_hyphen=True)] = "",
    /,
    *,
    statement: Annotated[bool, Parameter(negative=())] = False,
    tokens: int | None = None,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
    count: int = 1,
    echo: Annotated[bool, Parameter(negative=())] = False,
    checkpoint: str = "best",
) -> None:
    """Complete a line of code.

    The prompt may end inside a word. What the prompt itself says counts, however long it is: give the whole file up to
    the cursor, because names, calls and lines that it has used before are likely to come again. By default, a completion ends before the first line break after some text; with
    --statement, before the line break that ends the statement; with --tokens, after N tokens. It always ends where the
    model ends the file and, except with --tokens, when it repeats the same thing over and over. When the model's
    context window is full, it continues from the newest half of the window.

    Args:
        run: The run's folder.
        prompt: Source code up to the cursor; "-" reads it unchanged from standard input. Without a prompt, the model
            writes the beginning of a file.
        statement: Complete up to the end of the statement.
        tokens: Write this many tokens instead of a line.
        temperature: 0: always the most probable token; above 0: sample, more randomly the higher it is.
        top_p: Sample from the most probable tokens whose probabilities add up to this.
        seed: Random seed for sampling.
        count: Number of completions to sample, one after the other.
        echo: Print the prompt before each completion.
        checkpoint: "best", "last" or a step's number.

    Examples:

        trainwright lm complete run "plt.sc"
        trainwright lm complete run "import nump" --echo
        trainwright lm complete run "df.groupby(" --temperature 0.8 --count 5
        head -c 2000 script.py | trainwright lm complete run - --statement
    """
    from trainwright.errors import UsageError
    from trainwright_lm.completion.complete import Completer, Sampling, extent
    from trainwright_lm.runs.folder import open_run

    if count < 1 or (count > 1 and temperature == 0):
        raise UsageError(
            f"--count must be 1, or more with a --temperature above 0 (greedy ones are all the same); got {count}."
        )
    given = sys.stdin.buffer.read() if prompt == "-" else prompt.encode(errors="replace")
    text = given.decode(errors="replace")
    samplings = [Sampling(temperature=temperature, top_p=top_p, seed=seed + i) for i in range(count)]
    limit, ending = extent(text, tokens=tokens, statement=statement)
    opened = open_run(run, checkpoint)
    completer = Completer(opened.model, opened.tokenizer)
    for sampling in samplings:
        if echo:
            print(text, end="")
        if ending is None:
            for piece in completer.pieces(text, limit=limit, sampling=sampling):
                print(piece, end="", flush=True)
            print()
        else:
            print(completer.complete(text, limit=limit, ending=ending, sampling=sampling))
