"""Probes of a torch model that reads tokens: what later ones, and those of the padding, change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from trainwright.adapters.torch.called_model import LEAKS_BEYOND, Probe
from trainwright.seams.torch.trace import difference, first_difference
from trainwright.stages.batch import asks_for_next_token, real_positions

_TOKEN_KEYS = ("input_ids", "0")


def token_key(inputs: Mapping[str, Any], label_keys: Sequence[str]) -> str | None:
    """The name of the token ids (N, T) among a model's inputs."""
    tokens = [
        k
        for k, v in inputs.items()
        if isinstance(v, torch.Tensor)
        and v.dim() == 2
        and not v.is_floating_point()
        and v.dtype != torch.bool
        and k not in label_keys
        and "mask" not in k
        and v.shape[1] >= 4
    ]
    return next((k for k in _TOKEN_KEYS if k in tokens), tokens[0] if tokens else None)


def predicts_next_token(
    targets: torch.Tensor | None, inputs: Mapping[str, Any], label_keys: Sequence[str]
) -> bool:
    """Whether the targets that a loss was given are the model's tokens moved by one."""
    key = token_key(inputs, label_keys)
    if key is None or targets is None or targets.is_floating_point():
        return False
    return asks_for_next_token(inputs[key].cpu().numpy(), targets.detach().cpu().numpy())


def future_leak(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    key = token_key(probe.inputs, probe.label_keys)
    if key is None:
        return {}
    tokens = probe.inputs[key]
    length = tokens.shape[1]
    if base.dim() != 3 or base.shape[1] != length:
        return {}
    half = length // 2
    counted = _live_positions(probe, tokens)[:, :half].to(base.device)
    if not bool(counted.any()):
        return {}
    altered = tokens.clone()
    altered[:, half:] = (altered[:, half:] + 1) % (probe.vocabulary or int(tokens.max()) + 1)
    changed = probe.scores({**probe.inputs, key: altered})
    if changed is None:
        return {}
    found: dict[str, Any] = {"future_leak": difference(base[:, :half][counted], changed[:, :half][counted])}
    if found["future_leak"] > LEAKS_BEYOND:
        traces = [
            probe.trace({**probe.inputs, key: t}, _before(rows, length, half)) for t in (tokens, altered)
        ]
        found["future_from"] = first_difference(*traces)
    return found


def _live_positions(probe: Probe, tokens: torch.Tensor) -> torch.Tensor:
    """Where the labels, if they are of the tokens' shape, ask for a prediction (a prefix may see itself whole)."""
    labels = next((probe.inputs[k] for k in probe.label_keys if k in probe.inputs), None)
    if not isinstance(labels, torch.Tensor) or labels.shape != tokens.shape:
        return torch.ones_like(tokens, dtype=torch.bool)
    return torch.cat([labels[:, 1:] != -100, torch.zeros_like(labels[:, :1], dtype=torch.bool)], 1)


def _before(rows: int, length: int, half: int) -> Callable[[torch.Tensor], torch.Tensor | None]:
    """The first half of the positions, of (N, T, …) and (N, heads, T, width) results."""

    def keep(result: torch.Tensor) -> torch.Tensor | None:
        if result.dim() < 3 or len(result) != rows or result.shape[-1] == result.shape[-2] == length:
            return None
        if result.shape[1] == length:
            return result[:, :half]
        return result[:, :, :half] if result.dim() == 4 and result.shape[2] == length else None

    return keep


def unmasked_padding(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    """What a mask of the padding would change, where the pipeline gives none."""
    tokens = probe.inputs.get("input_ids")
    if not isinstance(tokens, torch.Tensor) or tokens.dim() != 2 or probe.pad_id is None:
        return {}
    if probe.inputs.get("attention_mask") is not None:
        return {}
    real = torch.as_tensor(real_positions(tokens.cpu().numpy(), None, pad_id=probe.pad_id))
    if bool(real.all()) or not bool(real.any(dim=1).all()):
        return {}
    changed = probe.scores({**probe.inputs, "attention_mask": real.to(tokens.dtype)})
    if changed is None or changed.shape != base.shape:
        return {}
    if base.dim() == 3 and base.shape[1] == tokens.shape[1]:
        at = real.to(base.device)
        return {"unmasked_padding_changes": difference(base[at], changed[at])}
    return {"unmasked_padding_changes": difference(base, changed)}


def padding_let_in(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    """What other tokens at the padding that the attention mask lets in change."""
    tokens, mask = probe.inputs.get("input_ids"), probe.inputs.get("attention_mask")
    if not isinstance(tokens, torch.Tensor) or not isinstance(mask, torch.Tensor) or probe.pad_id is None:
        return {}
    real = torch.as_tensor(real_positions(tokens.cpu().numpy(), None, pad_id=probe.pad_id)).to(tokens.device)
    let_in = ~real & (mask.to(tokens.device) != 0)
    if not bool(let_in.any()):
        return {}
    changed = probe.scores({**probe.inputs, "input_ids": tokens.masked_fill(let_in, int(tokens.max()))})
    if changed is None or changed.shape != base.shape:
        return {}
    at = real.to(base.device) if base.dim() == 3 and base.shape[1] == tokens.shape[1] else slice(None)
    return {"padding_let_in_changes": difference(base[at], changed[at])}
