"""The commands for a trained run: `trainwright lm eval`, `complete`, `export`, `import` and `push`."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from trainwright.errors import UsageError

if TYPE_CHECKING:
    from trainwright_lm.evaluation.evaluate import Evaluation
    from trainwright_lm.evaluation.quality import Interval, Quality


def evaluate(
    run: Path,
    /,
    *,
    data: Path | None = None,
    samples: int = 400,
    examples: int = 3,
    seed: int = 0,
    checkpoint: str = "best",
    json: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
) -> None:
    """Evaluate a run on its held-out documents: its loss, and line completions compared with two baselines.

    Loss in nats per token, perplexity and bits per byte count every held-out token once. Lines are cut at random places
    in their code, and at the beginning of library calls (after `plt.`, `df.`, `.fit(`). Each line is completed greedily
    and compared with the original: exact match, edit similarity, identifier match. The baselines are an n-gram model
    and the most frequent rest of a line after the same words, both built from the training documents. The model and the
    n-gram model recall what the file says above the line; each is measured without this recall, too.

    The results are saved as RUN/evaluation.json. They are the same every time.

    Args:
        run: The run's folder.
        data: The prepared data, if it has moved since the run was trained.
        samples: Number of lines of each kind to complete; 0: only the loss.
        examples: Number of the completed lines of each kind to show, evenly spaced among them.
        seed: Random seed for choosing the lines and the baselines' training text.
        checkpoint: best, last, or a step's number.
        json: Also write the results to this file; "-" is standard output.

    Examples:

        trainwright lm eval run
        trainwright lm eval run --samples 1000 --json results.json
        trainwright lm eval run --examples 10
        trainwright lm eval run --checkpoint 400 --samples 0
    """
    from trainwright_lm.evaluation.evaluate import as_json, open_data_of, save
    from trainwright_lm.evaluation.evaluate import evaluate as measure
    from trainwright_lm.runs.folder import EVALUATION, open_run

    _check_target(json)
    opened = open_run(run, checkpoint)
    result = measure(opened, open_data_of(opened, data), samples=samples, seed=seed, examples=examples)
    save(result, file := run / EVALUATION)
    console = Console(stderr=json == "-")
    console.print(as_table(result))
    console.print(f"\nSaved as {file}.", highlight=False, soft_wrap=True)
    if json == "-":
        sys.stdout.write(as_json(result))
    elif json:
        save(result, Path(json))


def _check_target(target: str | None) -> None:
    """Reject an output file that cannot be written before spending minutes."""
    if not target or target == "-":
        return
    if not Path(target).absolute().parent.is_dir():
        raise UsageError(f"{target} must be in an existing folder; {Path(target).parent} does not exist.")
    if Path(target).is_dir():
        raise UsageError(f"{target} is a folder; name a file to write the results to.")


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
    the cursor, because names, calls and lines that it has used before are likely to come again. By default, a completion
    ends before the first line break after some text; with --statement, before the line break that ends the statement;
    with --tokens, after N tokens. It always ends where the model ends the file and, except with --tokens, when it repeats
    the same thing over and over. When the model's context window is full, it continues from the newest half of the window.

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
    from trainwright_lm.completion.complete import Completer, Sampling, extent
    from trainwright_lm.runs.folder import open_run

    if count < 1 or (count > 1 and temperature == 0):
        raise UsageError(
            f"--count must be 1, or more with a --temperature above 0 (greedy ones are all the same); got {count}."
        )
    text = _read(prompt)
    samplings = [Sampling(temperature=temperature, top_p=top_p, seed=seed + i) for i in range(count)]
    limit, ending = extent(text, tokens=tokens, statement=statement)
    opened = open_run(run, checkpoint)
    completer = Completer(opened.model, opened.tokenizer)
    for sampling in samplings:
        print(text if echo else "", end="")
        if ending is None:
            for piece in completer.pieces(text, limit=limit, sampling=sampling):
                print(piece, end="", flush=True)  # as it is made
            print()
        else:
            print(completer.complete(text, limit=limit, ending=ending, sampling=sampling))


def _read(prompt: str) -> str:
    given = sys.stdin.buffer.read() if prompt == "-" else prompt.encode(errors="replace")
    return given.decode(errors="replace")


def export(
    run: Path, folder: Path, /, *, checkpoint: str = "best", force: Annotated[bool, Parameter(negative=())] = False
) -> None:
    """Write a run as a folder that transformers opens, with a model card.

    `AutoModelForCausalLM`, `AutoTokenizer` and `pipeline("text-generation")` open it as it is.

    Args:
        run: The run's folder.
        folder: The folder to write to, new or empty.
        checkpoint: "best", "last" or a step's number.
        force: Replace the files of an earlier export; other files in the folder are kept.

    Examples:

        trainwright lm export run model
        trainwright lm export run model --checkpoint last --force
    """
    from trainwright_lm.corpus.funnel import unit_of
    from trainwright_lm.exchange.export import export_run

    export_run(run, folder, checkpoint=checkpoint, force=force)
    for file in sorted(folder.iterdir()):
        unit, size = unit_of(file.stat().st_size)
        print(f"{file.stat().st_size / size:10.2f} {unit}  {file}")


def import_(folder: Path, run: Path, /) -> None:
    """Turn a folder that transformers wrote into a run.

    The model must be a GPT-2, or a Qwen3 with tied embeddings and as many key and value heads as query heads. Its
    tokenizer.json must be a byte-level BPE with the token <|endoftext|>. You can evaluate, complete with and export the
    run, but not resume its training.

    Args:
        folder: A folder with a model and its tokenizer, written by transformers' save_pretrained.
        run: The folder for the new run, new or empty.

    Examples:

        trainwright lm import downloaded/gpt2 run
        trainwright lm complete run "import numpy as "
    """
    from trainwright_lm.exchange.export import import_folder

    import_folder(folder, run)
    print(run)


def push(
    run: Path, repo: str, /, *, private: Annotated[bool, Parameter(negative=())] = False, checkpoint: str = "best"
) -> None:
    """Export a run and upload it to the Hub.

    This needs a token with write access, from `hf auth login` or in HF_TOKEN. HF_ENDPOINT selects another Hub.

    Args:
        run: The run's folder.
        repo: The repository on the Hub: name or owner/name. It is created if it does not exist.
        private: Create it as a private repository.
        checkpoint: "best", "last" or a step's number.

    Examples:

        trainwright lm push run my-name/tiny-completions --private
    """
    from trainwright_lm.exchange.export import push_run

    print(push_run(run, repo, private=private, checkpoint=checkpoint))


_TITLES = {"random": "Lines cut at random places in their code", "call": "Lines cut at the beginning of library calls"}
# The completers, by the names of evaluation.json; the n-gram model's has its number.
_COMPLETERS = {
    "model": "model",
    "ngram": "{}-gram model",
    "network": "model, no recall",
    "ngram_alone": "{}-gram, no recall",
    "frequent": "most frequent rest",
}
_BASELINES = ("ngram", "ngram_alone", "frequent")


def as_table(evaluation: Evaluation) -> RenderableType:
    """The loss in one line, a table of completions per kind, and some examples."""
    loss = evaluation.loss
    parts: list[RenderableType] = [
        Text(
            f"Held-out loss {loss.nats_per_token:.4f} nats per token, perplexity {loss.perplexity:.2f}, "
            f"{loss.bits_per_byte:.4f} bits per byte"
        ),
        Text(
            f"over {loss.tokens:,} tokens, {loss.bytes:,} bytes, in {loss.precision}; "
            f"the model after {evaluation.step:,} updates",
            style="dim",
        ),
    ]
    for kind, quality in evaluation.quality.items():
        title = f"{_TITLES[kind]}: {quality.cuts} in {quality.documents} documents"
        parts += ["", Text(title, style="bold"), _scores(quality, evaluation.baselines.ngram_order)]
        parts += [_verdict(quality), *_examples(quality)]
    if evaluation.quality:
        parts += [Text("Percent, with 95% intervals over documents. Recall: the file's own text above.", style="dim")]
    return Group(*parts)


def _scores(quality: Quality, ngram_order: int) -> Table:
    table = Table("", box=None, padding=(0, 2, 0, 0))
    for metric in quality.scores["model"]:
        table.add_column(metric.replace("_", " "), justify="right")
    for name, scores in quality.scores.items():
        table.add_row(_COMPLETERS[name].format(ngram_order), *map(_percent, scores.values()))
    return table


def _percent(interval: Interval) -> str:
    if math.isnan(interval.mean):
        return "none"
    return f"{100 * interval.mean:.1f} ({100 * interval.low:.1f}-{100 * interval.high:.1f})"


def _verdict(quality: Quality) -> Text:
    """Whether the model is better than the best baseline, by exact match."""
    ahead = min((quality.ahead[name]["exact_match"] for name in _BASELINES), key=lambda one: one.mean)
    clear = "clearly above" if ahead.low > 0 else "clearly below" if ahead.high < 0 else "not clearly different from"
    return Text(
        f"The model is {clear} the best baseline: {100 * ahead.mean:+.1f} points of exact matches "
        f"({100 * ahead.low:+.1f} to {100 * ahead.high:+.1f}).",
        style="green" if ahead.low > 0 else "yellow",
    )


def _examples(quality: Quality) -> list[Text]:
    """Each example in three lines, cut off at the edge: what was typed, the completion, what stood there."""
    if not quality.examples:
        return []
    lines = [Text(f"{len(quality.examples)} of them, evenly spaced:", style="dim")]
    for example in quality.examples:
        right = example.completion == example.rest
        lines += [
            _line("  typed      ", example.typed.strip(), ""),
            _line("  completed  ", example.completion, "green" if right else "red"),
            _line("  original   ", "the same" if right else example.rest, "dim" if right else ""),
            Text(),
        ]
    return lines


def _line(what: str, text: str, style: str) -> Text:
    return Text.assemble((what, "dim"), (text, style), no_wrap=True, overflow="ellipsis")
