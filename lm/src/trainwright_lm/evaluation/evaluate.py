"""Evaluates a run: its loss on held-out documents, and its completions against two baselines."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from trainwright.errors import ReadError, UsageError, WriteError
from trainwright_lm.atomic import replacing
from trainwright_lm.evaluation.baselines import (
    TEXT_BUDGET_BYTES,
    TOKEN_BUDGET,
    NgramDecoder,
    decode_stream,
    fit_ngrams,
    frequent_completer,
    line_completer,
    sampled_stream,
)
from trainwright_lm.evaluation.cuts import COMMON_LIBRARIES, DATA_SCIENCE, KINDS, Cut, Kind, find_cuts
from trainwright_lm.evaluation.quality import Completer, Quality, measure_quality
from trainwright_lm.network.loss import IGNORED, computing, perplexity_of, training_loss
from trainwright_lm.network.model import Transformer
from trainwright_lm.progress import stage, tracked
from trainwright_lm.runs.folder import Run, chosen_keywords, read_manifest
from trainwright_lm.tokens.pack import TokenFile
from trainwright_lm.tokens.prepared import PreparedData, open_data
from trainwright_lm.tokens.tokenizer import Tokenizer
from trainwright_lm.training.arithmetic import for_evaluation

# Windows per forward pass: enough to keep two cores busy, with a few MB of activations.
_WINDOWS = 16
# Text to search for cuts, in characters: Python's tokenizer reads it in two seconds.
_MOST_CHARACTERS = 4_000_000
# Documents per requested cut; many have no library calls.
_DOCUMENTS_A_CUT = 4


@dataclass(frozen=True, kw_only=True)
class HeldOutLoss:
    """The cross-entropy of all tokens of the held-out documents, including end tokens."""

    nats_per_token: float
    bits_per_byte: float
    """The total loss in bits, end tokens included, per byte of the documents: comparable between tokenizers."""
    tokens: int
    """Number of tokens, each predicted once."""
    bytes: int
    """UTF-8 bytes of exactly these tokens; an end token has none."""
    precision: str
    """Precision of the forward passes: fp32 or bf16."""

    perplexity: float
    """exp(nats per token)."""


def measure_loss(model: Transformer, file: TokenFile, tokenizer: Tokenizer, *, precision: str = "fp32") -> HeldOutLoss:
    """Measure the loss over all tokens of the file, in consecutive windows of the model's context length.

    An end token is placed before the first document, as one precedes every other. The last window has the remaining
    tokens. Each token is predicted from its own window only.

    Args:
        precision: fp32 or bf16, for the forward passes; sums are in fp32 and, over batches, in fp64.

    Raises:
        ReadError: if the file has no tokens, or the loss is not finite.
    """
    targets = file.tokens
    if not len(targets):
        raise ReadError(f"{file.path} has no tokens to predict; it is empty.")
    nats, step = 0.0, _WINDOWS * model.config.context
    with torch.inference_mode(), computing(precision, model.output_weight.device):
        for first in tracked("held-out loss", range(0, len(targets), step)):
            nats += _nats(model, file, first, first + step)
    if not math.isfinite(nats):
        raise ReadError(f"The model's loss is {nats}: its training has diverged.")
    text_bytes = count_bytes(targets, tokenizer)
    return HeldOutLoss(
        nats_per_token=nats / len(targets),
        bits_per_byte=nats / math.log(2) / max(1, text_bytes),
        tokens=len(targets),
        bytes=text_bytes,
        precision=precision,
        perplexity=perplexity_of(nats / len(targets)),
    )


def count_bytes(tokens: np.ndarray, tokenizer: Tokenizer) -> int:
    """The number of bytes of the tokens' text; an end token has none."""
    sizes = np.array([len(tokenizer.token_bytes(i)) for i in range(tokenizer.vocabulary_size)])
    sizes[tokenizer.end_id] = 0
    counts = np.bincount(tokens, minlength=len(sizes))
    return int(counts @ sizes)


def _nats(model: Transformer, file: TokenFile, first: int, end: int) -> float:
    """The summed loss in nats over the tokens from `first` on; what the last window lacks does not count."""
    before = file.end_id if first == 0 else int(file.tokens[first - 1])
    row = np.concatenate([[before], file.tokens[first:end]]).astype(np.int64)
    context, device = model.config.context, model.output_weight.device
    room = (0, -(len(row) - 1) % context)
    inputs, targets = np.pad(row[:-1], room), np.pad(row[1:], room, constant_values=IGNORED)
    inputs_BT, targets_BT = (torch.from_numpy(part.reshape(-1, context)).to(device) for part in (inputs, targets))
    return float(training_loss(model, inputs_BT, targets_BT))


@dataclass(frozen=True, kw_only=True)
class Baselines:
    """Sizes of the baselines."""

    ngram_order: int = 0
    ngram_tokens: int = 0
    """Tokens of its training text."""
    frequent_bytes: int = 0
    """Bytes of its training text."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All results of `trainwright lm eval`."""

    step: int
    """Updates after which the checkpoint was saved."""
    data: str
    """The prepared data's fingerprint."""
    loss: HeldOutLoss
    quality: Mapping[Kind, Quality]
    samples: int
    """Requested cuts of each kind."""
    seed: int
    baselines: Baselines


def evaluate(run: Run, data: PreparedData, *, samples: int = 400, seed: int = 0, examples: int = 3) -> Evaluation:
    """Evaluate a run on its held-out documents. The same run, samples and seed give the same result.

    Args:
        samples: Cuts of each kind, or fewer if the documents do not have as many; 0: only the loss.
        seed: Determines the cuts, the baselines' training text, and the bootstrap samples.
        examples: Completions of each kind to keep, evenly spaced among the cuts.

    Raises:
        UsageError: if a number is out of range, or the run was trained on other data.
        ReadError: if there is nothing to predict.
    """
    if min(samples, seed, examples) < 0:
        raise UsageError(f"--samples, --seed and --examples must not be negative; got {samples}, {seed}, {examples}.")
    check_same_data(run, data)
    loss = _loss(run, data)
    cuts = _cuts(data, samples, seed) if samples else {}
    completers, baselines = _completers(run, data, seed) if any(cuts.values()) else ({}, Baselines())
    return Evaluation(
        step=run.step,
        data=str(data.manifest.get("fingerprint", "")),
        loss=loss,
        quality={
            kind: measure_quality(own, completers, seed=seed, examples=examples) for kind, own in cuts.items() if own
        },
        baselines=baselines,
        samples=samples,
        seed=seed,
    )


def as_json(evaluation: Evaluation) -> str:
    """The evaluation as JSON; NaN becomes null."""
    finite = json.loads(json.dumps(dataclasses.asdict(evaluation)), parse_constant=lambda name: None)
    return json.dumps(finite, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def save(evaluation: Evaluation, file: Path) -> None:
    """Write the evaluation to a file atomically, replacing an earlier one.

    Raises:
        WriteError: if it cannot be written.
    """
    try:
        with replacing(file) as stream:
            stream.write(as_json(evaluation).encode())
    except OSError as error:
        raise WriteError(f"The evaluation could not be written to {file}: {error}.") from error


def _loss(run: Run, data: PreparedData) -> HeldOutLoss:
    """Uses a GPU if there is one and the run's training precision; moves the model back to the CPU afterwards."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision = for_evaluation(run.recipe, run.precision, device)
    try:
        return measure_loss(run.model.to(device), data.validation, run.tokenizer, precision=precision)
    finally:
        run.model.to("cpu")


def _completers(run: Run, data: PreparedData, seed: int) -> tuple[dict[str, Completer], Baselines]:
    """The model and the baselines, which are fitted to the training documents; first with the text above the line."""
    tokenizer = data.tokenizer
    with stage("baselines"):
        stream = sampled_stream(data.train, token_budget=TOKEN_BUDGET, seed=seed)
        ngrams = fit_ngrams(stream, vocabulary_size=tokenizer.vocabulary_size)
        text = decode_stream(stream, tokenizer, byte_budget=TEXT_BUDGET_BYTES)
    completers = {
        "model": line_completer(run.model, run.tokenizer),
        "ngram": line_completer(NgramDecoder(ngrams), tokenizer),
        "network": line_completer(run.model, run.tokenizer, recalls=False),
        "ngram_alone": line_completer(NgramDecoder(ngrams), tokenizer, recalls=False),
        "frequent": frequent_completer(text),
    }
    return completers, Baselines(ngram_order=ngrams.order, ngram_tokens=len(stream), frequent_bytes=len(text))


def _cuts(data: PreparedData, samples: int, seed: int) -> dict[Kind, list[Cut]]:
    documents = list(itertools.islice(_documents(data, seed), samples * _DOCUMENTS_A_CUT))
    # The data's keywords that are package names; the default libraries if the data was not selected by keywords.
    named = [word for word in chosen_keywords(data.manifest) if word.isidentifier()]
    libraries = list(dict.fromkeys([*(named or DATA_SCIENCE), *COMMON_LIBRARIES]))
    lines = tracked("lines to complete", documents)
    return find_cuts(lines, counts=dict.fromkeys(KINDS, samples), libraries=libraries, seed=seed)


def _documents(data: PreparedData, seed: int) -> Iterator[tuple[int, str]]:
    """Held-out documents in random order, up to a total number of characters."""
    file, characters = data.validation, 0
    for number in np.random.default_rng(seed).permutation(file.documents).tolist():
        text = data.tokenizer.decode(file.document(number).tolist())
        yield number, text
        characters += len(text)
        if characters >= _MOST_CHARACTERS:
            return


def open_data_of(run: Run, folder: Path | None = None) -> PreparedData:
    """The prepared data of a run, from its original location or the given folder.

    Raises:
        ReadError: if it no longer exists or cannot be read.
        UsageError: if the run does not record its location.
    """
    if folder is not None:
        return open_data(folder)
    known = read_manifest(run.folder).get("folder")
    if not known:
        raise UsageError(f"{run.folder} does not say where its data is. Name the prepared data with --data.")
    if not Path(known).is_dir():
        raise ReadError(f"The run's data is no longer in {known}. Name its new location with --data.")
    return open_data(Path(known))


def check_same_data(run: Run, data: PreparedData) -> None:
    """Reject other data than the run's: its held-out documents may be among the run's training documents.

    Raises:
        UsageError: if the data differs.
    """
    trained_on = read_manifest(run.folder).get("fingerprint")
    if trained_on is not None and trained_on != data.manifest.get("fingerprint"):
        raise UsageError(
            f"A run must be evaluated on the data it was trained on ({trained_on}); "
            f"{data.folder} holds other data ({data.manifest.get('fingerprint')}). Name the run's own data with --data."
        )
    if run.tokenizer.vocabulary_size != data.tokenizer.vocabulary_size or any(
        run.tokenizer.token_bytes(i) != data.tokenizer.token_bytes(i) for i in range(data.tokenizer.vocabulary_size)
    ):
        raise UsageError(f"The data must be prepared with the run's tokenizer; {data.folder} uses another one.")
