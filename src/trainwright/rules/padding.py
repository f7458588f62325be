"""Repairs that pad rows and labels, and that add the mask that separates padding from text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainwright.core import Repair, Tensors
from trainwright.rules.repairs import change_batches
from trainwright.stages import IGNORED_LABEL, real_positions


class PaddingCollator:
    """Pads the tokenizer's columns, and token labels with -100, then collates as before."""

    def __init__(self, tokenizer: Any, collator: Any) -> None:
        self.tokenizer, self.collator = tokenizer, collator
        self.__name__ = getattr(collator, "__name__", type(collator).__name__)

    def __call__(self, items: list[Any]) -> Any:
        names = [n for n in self.tokenizer.model_input_names if n in items[0]]
        padded = self.tokenizer.pad({n: [i[n] for i in items] for n in names}, return_tensors="np")
        width = padded[names[0]].shape[1]
        rows = []
        for row, item in enumerate(items):
            values = {k: v for k, v in item.items() if k not in names}
            labels = values.get("labels")
            if labels is not None and np.ndim(labels) == 1 and len(labels) == len(item[names[0]]):
                values["labels"] = [*labels, *[IGNORED_LABEL] * (width - len(labels))]
            rows.append({**values, **{n: padded[n][row].tolist() for n in names}})
        return self.collator(rows)


class RowPadding:
    """Pads columns along their first axis to the longest row, then collates as before; tensors stay tensors.

    Args:
        fill: the padding value of each column.
        masked: add an attention mask to rows that have none.
    """

    def __init__(
        self, collator: Any, columns: tuple[str, ...], fill: Mapping[str, int], tensors: Tensors, masked: bool
    ) -> None:
        self.collator, self.columns, self.fill, self.tensors, self.masked = (collator, columns, fill, tensors, masked)
        self.__name__ = getattr(collator, "__name__", type(collator).__name__)

    def __call__(self, items: list[Any]) -> Any:
        rows = [dict(i) if hasattr(i, "keys") else {str(n): v for n, v in enumerate(i)} for i in items]
        if self.masked:
            for row in rows:
                row.setdefault("attention_mask", [1] * len(row["input_ids"]))
        columns = (
            [*self.columns, "attention_mask"] if self.masked and "attention_mask" not in self.columns else self.columns
        )
        for column in columns:
            longest = max(len(row[column]) for row in rows)
            for row in rows:
                row[column] = self._padded(row[column], longest, self.fill.get(column, 0))
        if not hasattr(items[0], "keys"):
            return self.collator([type(items[0])(row.values()) for row in rows])
        return self.collator(rows)

    def _padded(self, value: Any, longest: int, fill: int) -> Any:
        is_tensor = self.tensors.is_tensor(value)
        array = self.tensors.to_numpy(value) if is_tensor else np.asarray(value)
        padded = np.pad(array, [(0, longest - len(array)), *[(0, 0)] * (array.ndim - 1)], constant_values=fill)
        return self.tensors.like(padded, value) if is_tensor else padded.tolist() if isinstance(value, list) else padded


class LabelPadding:
    """Collates all but the labels as before, and pads the labels, to the inputs' width if there is one per token."""

    def __init__(self, collator: Any, key: str, tensors: Tensors) -> None:
        self.collator, self.key, self.tensors = collator, key, tensors
        self.tokenizer = getattr(collator, "tokenizer", None)

    def __call__(self, items: list[Any]) -> dict[str, Any]:
        labels = [np.asarray(i[self.key]) for i in items]
        per_token = all(len(v) == len(i.get("input_ids", ())) for v, i in zip(labels, items))
        batch = dict(self.collator([{k: v for k, v in i.items() if k != self.key} for i in items]))
        reference = next(v for v in batch.values() if self.tensors.is_tensor(v))
        width = batch["input_ids"].shape[1] if per_token else max(len(v) for v in labels)
        padded = np.full((len(items), width), IGNORED_LABEL, dtype=np.int64)
        left = per_token and getattr(self.tokenizer, "padding_side", "right") == "left"
        for row, values in enumerate(labels):
            padded[row, width - len(values) :] = values if left else padded[row, width - len(values) :]
            padded[row, : len(values)] = padded[row, : len(values)] if left else values
        batch["labels"] = self.tensors.like(padded, reference, "int64")
        return batch


def ignore_padding_labels(key: str, pad_id: int | None, eos_id: int | None) -> Repair:
    """Give padding the label that the loss ignores."""

    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        mask = tensors.to_numpy(batch["attention_mask"]) if "attention_mask" in batch else None
        real = real_positions(tensors.to_numpy(batch["input_ids"]), mask, pad_id=pad_id, eos_id=eos_id)
        return {**batch, key: tensors.like(np.where(real, tensors.to_numpy(batch[key]), IGNORED_LABEL), batch[key])}

    return change_batches(f"give padding the label {IGNORED_LABEL}", change)


def mask_padding(pad_id: int | None, eos_id: int | None) -> Repair:
    """Pass an attention mask to the model."""

    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        real = real_positions(tensors.to_numpy(batch["input_ids"]), None, pad_id=pad_id, eos_id=eos_id)
        return {**batch, "attention_mask": tensors.like(real, batch["input_ids"])}

    return change_batches("give the model an attention mask over the padding", change)
