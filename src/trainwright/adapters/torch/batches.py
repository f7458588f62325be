"""Batches as the loader forms them: recorded, pooled, and facts about token batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import wrapt

from trainwright.adapters.torch.called_model import accepted_names, rows_of
from trainwright.adapters.torch.vocabulary import vocabulary_of
from trainwright.probes.batches import equal_inputs, measure_images, measure_label_count, measure_label_mask
from trainwright.seams.failures.blame import passed_on
from trainwright.stages import IGNORED_LABEL, BatchFacts, EqualInputs, ImageFacts, LabelMaskFacts, real_positions
from trainwright.tensors.torch import objects as tensors

POOLED = 8
_NUMBERS = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int8, torch.int16,
            torch.int32, torch.int64)  # fmt: skip


class RecordingCollator(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """Wraps a collator, with its attributes, and records the items of the last batch."""

    def __init__(self, collator: Callable[[list[Any]], Any]) -> None:
        super().__init__(collator)
        self._self_items: list[Any] = []

    @property
    def collator(self) -> Any:
        """The wrapped collator."""
        return self.__wrapped__

    @property
    def items(self) -> list[Any]:
        """The items of the last batch."""
        return self._self_items

    def __call__(self, items: list[Any]) -> Any:
        self._self_items = list(items)
        return passed_on(self.__wrapped__, items)


def batch_facts(
    batch: Mapping[str, Any], label_key: str | None, called: Any, model: Any, tokenizer: Any, **further: Any
) -> BatchFacts:
    """The facts of one batch.

    Args:
        called: the module that it is given to.
        model: the model that has the tokens' configuration.
        further: facts of how the batch was formed.
    """
    names, takes_any = accepted_names(called)
    return BatchFacts(
        rows=rows_of(batch),
        tensors={name: tensors.facts(value) for name, value in batch.items() if tensors.is_tensor(value)},
        others={name: type(value).__name__ for name, value in batch.items() if not tensors.is_tensor(value)},
        label_key=label_key,
        accepts=names,
        accepts_any=takes_any,
        images=image_facts(batch),
        **token_facts(batch, label_key, model, tokenizer),
        **further,
    )


def token_facts(batch: Mapping[str, Any], label_key: str | None, model: Any, tokenizer: Any) -> dict[str, Any]:
    """Facts about a batch of token ids; empty for batches without any."""
    tokens = batch.get("input_ids")
    if not _is_tokens(tokens) or tokens is None:
        return {}
    own_pad, pad_id, eos_id = special_ids(model, tokenizer)
    mask = _mask_of(batch)
    facts: dict[str, Any] = {
        "pad_id": pad_id,
        "eos_id": eos_id,
        "has_attention_mask": mask is not None,
        "largest_token": int(tokens.max()) if tokens.numel() else None,
        "tokenizer_size": len(tokenizer) if tokenizer is not None else None,
    }
    if (size := vocabulary_of(model)) is not None:
        facts["vocabulary"] = size
    real = _real(batch, pad_id, eos_id)
    if mask is not None or pad_id is not None:
        facts["padding_share"] = float(1 - real.mean())
    if mask is not None and own_pad is not None and own_pad != eos_id:
        by_token = real_positions(tokens.cpu().numpy(), None, pad_id=own_pad)
        facts["padding_tokens"] = int((~by_token).sum())
        facts["attended_padding"] = int((real & ~by_token).sum())
        facts["hidden_tokens"] = int((~real & (tokens.cpu().numpy() != own_pad)).sum())
    facts["mask"] = label_mask(batch, label_key, pad_id, eos_id, getattr(tokenizer, "mask_token_id", None))
    return facts


def several_batches_facts(
    batches: Sequence[Mapping[str, Any]], label_key: str | None, model: Any, tokenizer: Any
) -> dict[str, Any]:
    """What the first batches show: labels that count, padding, inputs that are all the same."""
    labels = [b[label_key] for b in batches if label_key and isinstance(b.get(label_key), torch.Tensor)]
    whole = [t for t in labels if not t.is_floating_point() and t.dtype != torch.bool and t.dim()]
    facts: dict[str, Any] = {"label_counts": tuple(measure_label_count(t.cpu().numpy()) for t in whole if len(t))}
    facts["equal_inputs"] = _equal_inputs(batches, label_key)
    if not all(_is_tokens(b.get("input_ids")) for b in batches):
        return facts
    _, pad_id, eos_id = special_ids(model, tokenizer)
    masks = [label_mask(b, label_key, pad_id, eos_id) for b in batches]
    facts["masks"] = tuple(m for m in masks if m is not None)
    if pad_id is not None or all(_mask_of(b) is not None for b in batches):
        facts["padding_shares"] = tuple(float(1 - _real(b, pad_id, eos_id).mean()) for b in batches)
    return facts


def _equal_inputs(batches: Sequence[Mapping[str, Any]], label_key: str | None) -> EqualInputs | None:
    if not label_key or not all(isinstance(b.get(label_key), torch.Tensor) and b[label_key].dim() for b in batches):
        return None
    held = [{k: v for k, v in b.items() if isinstance(v, torch.Tensor)} for b in batches]
    if not all(_is_plain(t) for b in held for t in b.values()):
        return None
    rows = [{k: tensors.to_numpy(v) for k, v in b.items()} for b in held]
    return equal_inputs([({k: v for k, v in b.items() if k != label_key}, b[label_key]) for b in rows])


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether NumPy has such numbers; it has no sparse, nested or quantized ones."""
    return tensor.layout == torch.strided and not tensor.is_nested and tensor.dtype in _NUMBERS


def special_ids(model: Any, tokenizer: Any) -> tuple[int | None, int | None, int | None]:
    """The tokenizer's padding id, that or the configured one, and the end-of-sequence id."""
    own = getattr(tokenizer, "pad_token_id", None)
    configured = getattr(getattr(model, "config", None), "pad_token_id", None)
    return own, own if own is not None else configured, getattr(tokenizer, "eos_token_id", None)


def label_mask(
    batch: Mapping[str, Any], label_key: str | None, pad_id: int | None, eos_id: int | None, mask_id: int | None = None
) -> LabelMaskFacts | None:
    """The facts of token labels of the inputs' shape; None for other labels."""
    tokens, labels, mask = batch["input_ids"], batch.get(label_key) if label_key else None, _mask_of(batch)
    if not isinstance(labels, torch.Tensor) or labels.shape != tokens.shape or labels.is_floating_point():
        return None
    attention = mask.cpu().numpy() if mask is not None else None
    return measure_label_mask(
        tokens.cpu().numpy(), labels.cpu().numpy(), attention, pad_id=pad_id, eos_id=eos_id, mask_id=mask_id
    )


def other_padding_labels(
    batch: Mapping[str, Any], label_key: str, pad_id: int | None, eos_id: int | None
) -> torch.Tensor | None:
    """Token labels with other labels that occur at counted padding positions; None if there are none."""
    if not _is_tokens(batch.get("input_ids")):
        return None
    labels = batch.get(label_key)
    if not isinstance(labels, torch.Tensor) or labels.shape != batch["input_ids"].shape or labels.is_floating_point():
        return None
    live = labels != IGNORED_LABEL
    counted = live & ~torch.as_tensor(_real(batch, pad_id, eos_id), device=live.device)
    values = torch.unique(labels[live])
    if not bool(counted.any()) or len(values) < 2:
        return None
    after = values[(torch.searchsorted(values, labels[counted]) + 1) % len(values)]
    return labels.masked_scatter(counted, after)


def image_facts(batch: Mapping[str, Any]) -> ImageFacts | None:
    """Facts about the first tensor of multichannel images."""
    for key, value in batch.items():
        if isinstance(value, torch.Tensor) and value.dim() == 4 and value.dtype != torch.bool:
            return measure_images(key, value.float().cpu().numpy())
    return None


def _is_tokens(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_floating_point() and value.dim() == 2


def _mask_of(batch: Mapping[str, Any]) -> torch.Tensor | None:
    mask = batch.get("attention_mask")
    return mask if isinstance(mask, torch.Tensor) and mask.shape == batch["input_ids"].shape else None


def _real(batch: Mapping[str, Any], pad_id: int | None, eos_id: int | None) -> np.ndarray:
    mask = _mask_of(batch)
    attention = mask.cpu().numpy() if mask is not None else None
    return real_positions(batch["input_ids"].cpu().numpy(), attention, pad_id=pad_id, eos_id=eos_id)
