"""A model's loss on held-out text: nats per token, perplexity, bits per byte."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from trainwright.errors import ReadError
from trainwright_lm.network.loss import perplexity_of, training_loss
from trainwright_lm.network.model import Transformer
from trainwright_lm.network.precision import computing
from trainwright_lm.tokens.pack import TokenFile
from trainwright_lm.tokens.tokenizer import Tokenizer

# Windows per forward pass: enough to keep two cores busy, with a few MB of activations.
_WINDOWS = 16


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

    @property
    def perplexity(self) -> float:
        """exp(nats per token)."""
        return perplexity_of(self.nats_per_token)


def measure_loss(
    model: Transformer,
    file: TokenFile,
    tokenizer: Tokenizer,
    *,
    precision: str = "fp32",
    at_once: int = _WINDOWS,
    advance: Callable[[int], None] = lambda windows: None,
) -> HeldOutLoss:
    """Measure the loss over all tokens of the file, in consecutive windows of the model's context length.

    An end token is placed before the first document, as one precedes every other. The last window has the remaining
    tokens. Each token is predicted from its own window only.

    Args:
        precision: fp32 or bf16, for the forward passes; sums are in fp32 and, over batches, in fp64.
        at_once: Windows per forward pass; affects only rounding.
        advance: Called with the number of windows done.

    Raises:
        ReadError: if the file has no tokens, or the loss is not finite.
    """
    targets = file.tokens
    if not len(targets):
        raise ReadError(f"{file.path} has no tokens to predict; it is empty.")
    nats = 0.0
    with torch.inference_mode(), computing(precision, model.output_weight.device):
        for first, shape in _batches(len(targets), model.config.context, at_once):
            nats += _nats(model, file, first, shape)
            advance(shape[0])
    if not math.isfinite(nats):
        raise ReadError(f"The model's loss is {nats}: its training has diverged.")
    text_bytes = count_bytes(targets, tokenizer)
    return HeldOutLoss(
        nats_per_token=nats / len(targets),
        bits_per_byte=nats / math.log(2) / max(1, text_bytes),
        tokens=len(targets),
        bytes=text_bytes,
        precision=precision,
    )


def count_windows(model: Transformer, file: TokenFile) -> int:
    """The number of windows that `measure_loss` evaluates."""
    return -(-len(file.tokens) // int(model.config.context))


def count_bytes(tokens: np.ndarray, tokenizer: Tokenizer) -> int:
    """The number of bytes of the tokens' text; an end token has none."""
    sizes = np.array([len(tokenizer.token_bytes(i)) for i in range(tokenizer.vocabulary_size)])
    sizes[tokenizer.end_id] = 0
    counts = np.bincount(tokens, minlength=len(sizes))
    return int(counts @ sizes)


def _batches(tokens: int, context: int, at_once: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each batch's first token and shape (windows, length): full windows, then the remainder as one window."""
    whole = tokens // context
    for first in range(0, whole, at_once):
        yield first * context, (min(at_once, whole - first), context)
    if tokens % context:
        yield whole * context, (1, tokens % context)


def _nats(model: Transformer, file: TokenFile, first: int, shape: tuple[int, int]) -> float:
    """The summed loss in nats over windows of shape (count, length) whose first target is token `first`."""
    last = first + shape[0] * shape[1]
    before = file.end_id if first == 0 else int(file.tokens[first - 1])
    row = np.concatenate([[before], file.tokens[first:last]]).astype(np.int64)
    device = model.output_weight.device
    inputs_BT, targets_BT = (torch.from_numpy(part.reshape(shape)).to(device) for part in (row[:-1], row[1:]))
    return float(training_loss(model, inputs_BT, targets_BT))
