"""Cross-entropy fused with the output layer, in chunks of rows: the full logits never exist. Key token weights.

Dimensions in tensor names: N rows (windows x positions), C rows of a chunk, D width, V vocabulary, B windows,
T positions.

The forward pass turns each chunk's logits directly into its loss and gradients and frees them; the backward pass only
scales. This is the method of Liger Kernel (arXiv 2410.10989) and of Apple's cut cross-entropy (2411.09009).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from trainwright_lm.network.model import Transformer

FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def computing(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """The context for forward passes in this format; weights and optimizer stay in fp32."""
    context: AbstractContextManager[Any] = torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=precision == "bf16"
    )
    return context


IGNORED = -100  # torch's default for targets that do not count
# Measured on two cores at vocabulary 8,192 and width 256: fewer rows accumulate the weight gradient too often, more
# exceed the processor's cache. A GPU needs more rows to be busy.
CHUNK_ROWS = 512
CHUNK_ROWS_GPU = 4096


def perplexity_of(nats: float) -> float:
    """exp(nats per token)."""
    return math.exp(min(nats, 700.0))  # exp(710) overflows a float


def training_loss(
    model: Transformer,
    inputs_BT: Tensor,
    targets_BT: Tensor,
    weights_B: Tensor | None = None,
    z_loss: float = 0.0,
    *,
    compiled: bool = False,
) -> Tensor:
    """The weighted sum of nats over all targets that count; the caller divides it by the update's total weight.

    Args:
        weights_B: the weight of each window's tokens; None: 1.
        compiled: compile what lies between the products with the output layer.
    """
    hidden_BTD = model.hidden(inputs_BT)
    weights_N = None if weights_B is None else weights_B.repeat_interleave(inputs_BT.shape[1])
    return linear_cross_entropy(
        hidden_BTD.flatten(0, 1), model.output_weight, targets_BT.flatten(), weights_N, z_loss=z_loss, compiled=compiled
    )


def linear_cross_entropy(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    weights_N: Tensor | None = None,
    *,
    z_loss: float = 0.0,
    chunk_rows: int = 0,
    compiled: bool = False,
) -> Tensor:
    """The weighted SUM of the cross-entropies of softmax(hidden @ weight.T) at the targets: a scalar in nats.

    Matrix products use autocast's type if it is on, otherwise hidden's; softmax is at least float32. Only first
    derivatives are supported.

    Args:
        targets_N: classes 0..V-1, or -100 for rows that do not count.
        weights_N: the weight of each row; None: 1.
        z_loss: coefficient of log(sum(exp(logits)))², added to each row's loss (PaLM, arXiv 2204.02311: 1e-4).
        chunk_rows: rows at a time; 0: the number measured to be fast on the device.
        compiled: compile what lies between the products.
    """
    device = hidden_ND.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_ND.dtype
    chunk_rows = chunk_rows or (CHUNK_ROWS if device == "cpu" else CHUNK_ROWS_GPU)
    needs_gradients = torch.is_grad_enabled() and (hidden_ND.requires_grad or weight_VD.requires_grad)
    given = (hidden_ND, weight_VD.to(dtype), targets_N, weights_N, z_loss, chunk_rows)
    with torch.autocast(device, enabled=False), torch.no_grad():
        if not needs_gradients:
            return _without_gradients(*given)
        loss, grad_hidden_ND, grad_weight_VD = _in_chunks(*given, compiled)
    with_gradients: Tensor = _WithGradients.apply(
        hidden_ND, weight_VD, loss, grad_hidden_ND, grad_weight_VD.to(weight_VD.dtype)
    )
    return with_gradients


def _without_gradients(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, weights_N: Tensor | None, z_loss: float, chunk_rows: int
) -> Tensor:
    """The loss alone, by torch's own function, which a debugger can watch."""
    exact = torch.promote_types(weight_VD.dtype, torch.float32)
    loss = hidden_ND.new_zeros((), dtype=exact)
    for start in range(0, len(targets_N), chunk_rows):
        rows = slice(start, start + chunk_rows)
        logits_CV = (hidden_ND[rows].to(weight_VD.dtype) @ weight_VD.t()).to(exact)
        nats_C = F.cross_entropy(logits_CV, targets_N[rows], reduction="none", ignore_index=IGNORED)
        if z_loss:
            nats_C += z_loss * logits_CV.logsumexp(1).square() * (targets_N[rows] != IGNORED)
        loss += (nats_C if weights_N is None else nats_C * weights_N[rows].to(exact)).sum()
    return loss


class _WithGradients(torch.autograd.Function):
    """The loss, whose gradients are known already."""

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, loss: Tensor, *gradients: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        return loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradient * grads[0].to(gradient.dtype) for gradient in ctx.saved_tensors), None, None, None


def _in_chunks(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    weights_N: Tensor | None,
    z_loss: float,
    chunk_rows: int,
    compiled: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss, and the gradients of hidden and weight."""
    exact = torch.promote_types(weight_VD.dtype, torch.float32)
    loss = hidden_ND.new_zeros((), dtype=exact)
    grad_hidden_ND, grad_weight_VD = torch.empty_like(hidden_ND), torch.zeros_like(weight_VD, dtype=exact)
    counts_N = (targets_N != IGNORED).to(exact)
    if weights_N is not None:
        counts_N = counts_N * weights_N.to(exact)
    # Chunks of nearly the same size: another size is compiled once more.
    chunk_rows = math.ceil(rows_of / math.ceil(rows_of / chunk_rows)) if (rows_of := len(targets_N)) else chunk_rows
    # Allocated once: new memory for each chunk's logits costs a tenth of a training step on a CPU.
    shape = (min(chunk_rows, len(targets_N)), len(weight_VD))
    fused = _compiled() if compiled else None
    products = hidden_ND.new_empty(shape, dtype=weight_VD.dtype)
    buffers = None if fused else (hidden_ND.new_empty(shape, dtype=exact), hidden_ND.new_empty(shape, dtype=exact))
    for start in range(0, len(targets_N), chunk_rows):
        rows = slice(start, start + chunk_rows)
        hidden_CD = hidden_ND[rows].to(weight_VD.dtype)
        targets_C1 = targets_N[rows].clamp_min(0)[:, None]
        counts_C1 = counts_N[rows][:, None]
        product_CV = torch.mm(hidden_CD, weight_VD.t(), out=products[: len(hidden_CD)])
        if fused:
            nats_C1, grad_CV = fused(product_CV, targets_C1, z_loss)
        else:
            logits_CV, probabilities_CV = (buffer[: len(hidden_CD)] for buffer in buffers or ())
            nats_C1, grad_CV = _in_buffers(product_CV, targets_C1, z_loss, logits_CV, probabilities_CV)
        loss += (counts_C1 * nats_C1).sum()
        # Rows are weighted where they are narrow: D wide instead of V.
        grad_hidden_ND[rows] = (grad_CV @ weight_VD) * counts_C1
        weighed_CD = (hidden_CD * counts_C1).to(weight_VD.dtype)
        if exact == weight_VD.dtype:
            grad_weight_VD.addmm_(grad_CV.t(), weighed_CD)
        else:
            grad_weight_VD += grad_CV.t() @ weighed_CD
    return loss, grad_hidden_ND, grad_weight_VD


def _in_buffers(
    product_CV: Tensor, targets_C1: Tensor, z_loss: float, logits_CV: Tensor, grad_CV: Tensor
) -> tuple[Tensor, Tensor]:
    """The rows' losses, and in the place of their logits the gradients; both buffers are overwritten."""
    logits_CV.copy_(product_CV)
    torch.softmax(logits_CV, dim=1, out=grad_CV)
    # log(sum(exp(logits))) without a second exponential: the largest probability is exp(largest logit) / that sum.
    norms_C1 = logits_CV.amax(1, keepdim=True) - grad_CV.amax(1, keepdim=True).log()
    nats_C1 = norms_C1 - logits_CV.gather(1, targets_C1)
    if z_loss:
        grad_CV.mul_(1 + 2 * z_loss * norms_C1)
    grad_CV.scatter_add_(1, targets_C1, torch.full_like(nats_C1, -1.0))
    product_CV.copy_(grad_CV)
    return nats_C1 + z_loss * norms_C1.square(), product_CV


def _at_once(product_CV: Tensor, targets_C1: Tensor, z_loss: float) -> tuple[Tensor, Tensor]:
    """The same, written for the compiler: two passes over the logits, and no buffers."""
    logits_CV = product_CV.to(torch.promote_types(product_CV.dtype, torch.float32))
    norms_C1 = torch.logsumexp(logits_CV, 1, keepdim=True)
    nats_C1 = norms_C1 - logits_CV.gather(1, targets_C1) + z_loss * norms_C1.square()
    grad_CV = (logits_CV - norms_C1).exp() * (1 + 2 * z_loss * norms_C1)
    hit_CV = torch.arange(logits_CV.shape[1], device=logits_CV.device) == targets_C1
    return nats_C1, (grad_CV - hit_CV.to(grad_CV.dtype)).to(product_CV.dtype)


@functools.cache
def _compiled() -> Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]]:
    compiled: Callable[[Tensor, Tensor, float], tuple[Tensor, Tensor]] = torch.compile(_at_once)
    return compiled


def key_token_ids(encode: Callable[[str], list[int]], words: Sequence[str]) -> tuple[list[int], list[str]]:
    """The ids of words that are one token, each with and without a leading space, and the spellings that are not."""
    bare = dict.fromkeys(word.strip() or word for word in words)
    spellings = [spelling for word in bare for spelling in (word, f" {word}")]
    encoded = {spelling: encode(spelling) for spelling in spellings}
    ids = sorted({tokens[0] for tokens in encoded.values() if len(tokens) == 1})
    return ids, [spelling for spelling, tokens in encoded.items() if len(tokens) != 1]


def told_spellings(spellings: Sequence[str]) -> str:
    """Spellings in a list: a word that is among them with and without its blank stands there once."""
    known = set(spellings)
    words = (s for s in spellings if not (s.startswith(" ") and s.strip() in known))
    return ", ".join(f"{word!r} (with and without a blank)" if f" {word}" in known else repr(word) for word in words)


def window_weights(inputs_BT: Tensor, ids: Sequence[int], key_weight: float) -> Tensor:
    """(B,) float32: 1 + key_weight x the window's number of key tokens."""
    keys = torch.tensor(list(ids), dtype=inputs_BT.dtype, device=inputs_BT.device)
    return 1.0 + key_weight * torch.isin(inputs_BT, keys).sum(1, dtype=torch.float32)
