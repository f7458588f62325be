"""Probes of a torch model that reads tokens: the effect of later tokens and of padding tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from trainwright.adapters.torch.called_model import CalledModel
from trainwright.probes.batches import asks_for_next_token
from trainwright.probes.forward import LEAKS_BEYOND, changed_by_later_tokens, difference, later_half_changed
from trainwright.seams.torch.trace import first_difference
from trainwright.stages import IGNORED_LABEL, real_positions
from trainwright.tensors.torch import objects as tensors

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


def predicts_next_token(targets: torch.Tensor | None, inputs: Mapping[str, Any], label_keys: Sequence[str]) -> bool:
    """Whether the targets passed to a loss are the model's tokens shifted by one."""
    key = token_key(inputs, label_keys)
    if key is None or targets is None or targets.is_floating_point():
        return False
    return asks_for_next_token(tensors.to_numpy(inputs[key]), tensors.to_numpy(targets))


def future_leak(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    key = token_key(probe.inputs, probe.label_keys)
    if key is None:
        return {}
    given = probe.inputs[key]
    tokens = tensors.to_numpy(given)
    altered = later_half_changed(tokens, probe.vocabulary)

    def inputs(ids: np.ndarray) -> dict[str, Any]:
        return {**probe.inputs, key: tensors.like(ids, given)}

    leak = changed_by_later_tokens(
        lambda ids: probe.answer(inputs(ids)), tokens, altered, _live_positions(probe, given)
    )
    if leak is None:
        return {}
    if leak <= LEAKS_BEYOND:
        return {"future_leak": leak}
    keep = _before(rows, tokens.shape[1], tokens.shape[1] // 2)
    traces = [probe.trace(inputs(ids), keep) for ids in (tokens, altered)]
    return {"future_leak": leak, "future_from": first_difference(*traces)}


def _live_positions(probe: CalledModel, tokens: torch.Tensor) -> np.ndarray | None:
    """Positions where labels, if they have the tokens' shape, require a prediction (a prefix may see all of itself)."""
    labels = next((probe.inputs[k] for k in probe.label_keys if k in probe.inputs), None)
    if not isinstance(labels, torch.Tensor) or labels.shape != tokens.shape:
        return None
    asked = tensors.to_numpy(labels)[:, 1:] != IGNORED_LABEL
    return np.pad(asked, ((0, 0), (0, 1)))


def _before(rows: int, length: int, half: int) -> Callable[[torch.Tensor], torch.Tensor | None]:
    """The first half of the positions, of (N, T, …) and (N, heads, T, width) results."""

    def keep(result: torch.Tensor) -> torch.Tensor | None:
        if result.dim() < 3 or len(result) != rows or result.shape[-1] == result.shape[-2] == length:
            return None
        if result.shape[1] == length:
            return result[:, :half]
        return result[:, :, :half] if result.dim() == 4 and result.shape[2] == length else None

    return keep


def unmasked_padding(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    """The effect that a padding mask would have, if the pipeline provides none."""
    tokens = probe.inputs.get("input_ids")
    if not isinstance(tokens, torch.Tensor) or tokens.dim() != 2 or probe.pad_id is None:
        return {}
    if probe.inputs.get("attention_mask") is not None:
        return {}
    real = real_positions(tensors.to_numpy(tokens), None, pad_id=probe.pad_id)
    if real.all() or not real.any(axis=1).all():
        return {}
    changed = probe.answer({**probe.inputs, "attention_mask": torch.as_tensor(real).to(tokens.dtype)})
    if changed is None or changed.shape != base.shape:
        return {}
    at = real if _has_positions(base, tokens) else slice(None)
    return {"unmasked_padding_changes": difference(base[at], changed[at])}


def padding_let_in(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    """The effect of other tokens at padding positions that the attention mask does not mask."""
    tokens, mask = probe.inputs.get("input_ids"), probe.inputs.get("attention_mask")
    if not isinstance(tokens, torch.Tensor) or not isinstance(mask, torch.Tensor) or probe.pad_id is None:
        return {}
    real = real_positions(tensors.to_numpy(tokens), None, pad_id=probe.pad_id)
    let_in = ~real & (tensors.to_numpy(mask) != 0)
    if not let_in.any():
        return {}
    others = tokens.masked_fill(torch.as_tensor(let_in).to(tokens.device), int(tokens.max()))
    changed = probe.answer({**probe.inputs, "input_ids": others})
    if changed is None or changed.shape != base.shape:
        return {}
    at = real if _has_positions(base, tokens) else slice(None)
    return {"padding_let_in_changes": difference(base[at], changed[at])}


def _has_positions(answer: np.ndarray, tokens: torch.Tensor) -> bool:
    return answer.ndim == 3 and answer.shape[1] == tokens.shape[1]
