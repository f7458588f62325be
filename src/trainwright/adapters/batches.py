"""Batches as the loader forms them: recorded, pooled, and token batches in numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from trainwright.seams.snapshot import seed_everything
from trainwright.stages.batch import measure_label_mask

POOLED = 8


class RecordingCollator:
    """Forms batches as another collator does, and keeps the items of the last one."""

    def __init__(self, collator: Callable[[list[Any]], Any]) -> None:
        self.collator = collator
        self.items: list[Any] = []

    def __call__(self, items: list[Any]) -> Any:
        self.items = list(items)
        return self.collator(items)


class Pool:
    """The first training batches, so that every experiment can use the same ones."""

    def __init__(self, loader: Any, *, label_key: Callable[[Mapping[str, Any]], str | None]) -> None:
        seed_everything(1)
        self._batches: list[Mapping[str, Any]] = []
        for batch in loader:
            self._batches.append(batch)
            if len(self._batches) == POOLED:
                break
        # Stable: among batches with as many classes the loader's order is kept.
        self._richest = sorted(self._batches, key=lambda b: -_classes(b, label_key(b)))

    def take(self, count: int, *, seed: int) -> list[Mapping[str, Any]]:
        """Some batches; one is among those with most classes, several are in the loader's order."""
        if count == 1:
            return [self._richest[seed % len(self._richest)]]
        start = seed % len(self._batches)
        return (self._batches[start:] + self._batches[:start])[:count]

    def __len__(self) -> int:
        return len(self._batches)


def _classes(batch: Mapping[str, Any], key: str | None) -> int:
    labels = batch.get(key) if key else None
    if not isinstance(labels, torch.Tensor) or labels.is_floating_point() or labels.dim() != 1:
        return 0
    return int(torch.unique(labels).numel())


def token_facts(batch: Mapping[str, Any], label_key: str | None, model: Any, tokenizer: Any) -> dict[str, Any]:
    """Facts of a batch of token ids; empty for batches without."""
    tokens = batch.get("input_ids")
    if not isinstance(tokens, torch.Tensor) or tokens.is_floating_point() or tokens.dim() != 2:
        return {}
    pad_id = _first(getattr(tokenizer, "pad_token_id", None), getattr(model.config, "pad_token_id", None)
                    if hasattr(model, "config") else None)  # fmt: skip
    eos_id = getattr(tokenizer, "eos_token_id", None)
    mask = batch.get("attention_mask")
    mask = mask if isinstance(mask, torch.Tensor) and mask.shape == tokens.shape else None
    facts: dict[str, Any] = {
        "pad_id": pad_id,
        "eos_id": eos_id,
        "has_attention_mask": mask is not None,
        "largest_token": int(tokens.max()) if tokens.numel() else None,
        "tokenizer_size": len(tokenizer) if tokenizer is not None else None,
    }
    with contextlib.suppress(Exception):  # models without an input embedding raise several kinds of errors
        facts["vocabulary"] = int(model.get_input_embeddings().weight.shape[0])
    padding = mask == 0 if mask is not None else (tokens == pad_id) if pad_id is not None else None
    if padding is not None:
        facts["padding_share"] = float(padding.float().mean())
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown is not None and unknown != eos_id:
        real = tokens[~padding] if padding is not None else tokens
        facts["unknown_share"] = float((real == unknown).float().mean()) if real.numel() else None
    labels = batch.get(label_key) if label_key else None
    if isinstance(labels, torch.Tensor) and labels.shape == tokens.shape and not labels.is_floating_point():
        facts["mask"] = measure_label_mask(
            tokens.numpy(), labels.numpy(), mask.numpy() if mask is not None else None, pad_id=pad_id, eos_id=eos_id
        )
    if tokenizer is not None:
        with contextlib.suppress(Exception):  # ids of another vocabulary cannot be decoded: another fact shows that
            facts["decoded"] = tuple(tokenizer.decode(row) for row in tokens[:3])
    return facts


def _first(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


