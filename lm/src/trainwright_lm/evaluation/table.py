"""Displays an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trainwright_lm.evaluation.cuts import Kind
from trainwright_lm.evaluation.evaluate import BASELINES, FREQUENT, MODEL, NETWORK, NGRAM, NGRAM_ALONE, Evaluation
from trainwright_lm.evaluation.quality import METRICS, Interval, Quality

_TITLES: Mapping[Kind, str] = {
    "random": "Lines cut at random places in their code",
    "call": "Lines cut at the beginning of library calls",
}


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
    for metric in METRICS:
        table.add_column(metric.replace("_", " "), justify="right")
    names = {
        MODEL: "model",
        NGRAM: f"{ngram_order}-gram model",
        NETWORK: "model, no recall",
        NGRAM_ALONE: f"{ngram_order}-gram, no recall",
        FREQUENT: "most frequent rest",
    }
    for name, scores in quality.scores.items():
        table.add_row(names[name], *(_percent(scores[metric]) for metric in METRICS))
    return table


def _percent(interval: Interval) -> str:
    if math.isnan(interval.mean):
        return "none"
    return f"{100 * interval.mean:.1f} ({100 * interval.low:.1f}-{100 * interval.high:.1f})"


def _verdict(quality: Quality) -> Text:
    """Whether the model is better than the best baseline, by exact match."""
    ahead = min((quality.ahead[name]["exact_match"] for name in BASELINES), key=lambda one: one.mean)
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
