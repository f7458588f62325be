"""Facts about fit's first batches, in the form the model receives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.nested_values import name_arrays
from trainwright.adapters.keras.input.one_batch import WEIGHT, FitBatch, X
from trainwright.adapters.keras.input.reading import target_view
from trainwright.adapters.keras.model_inputs import ModelInputs, inputs_of, losing_at_targets
from trainwright.core import Failure
from trainwright.frameworks.label_names import ARGUMENTS, find_label
from trainwright.probes.batches import equal_inputs, measure_images, measure_label_count, measure_label_mask
from trainwright.seams.failures.blame import failure_of
from trainwright.stages import BatchFacts, EqualInputs, ImageFacts, LabelMaskFacts, TensorFacts
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import version

_TOKENS, _MASK = "input_ids", "attention_mask"


def measure_batch(data: FitData, model: Any) -> BatchFacts:
    """Form the first batches as training does."""
    try:
        formed = data.pool()
    except Exception as error:  # the user's data raised, which is a finding
        return BatchFacts(failure=failure_of(error), collator=_former(data))
    if not formed:
        nothing = Failure(type="StopIteration", message=f"{_former(data)} gave no batch", where=None)
        return BatchFacts(failure=nothing, collator=_former(data))
    first, taken = formed[0], inputs_of(model)
    targets = tuple(target_view(first))
    held = _evaluation_batch(data)
    weightless, every = data.weightless_rows() if all(b.weighs_nothing for b in formed) else (0, False)
    return BatchFacts(
        rows=first.rows,
        tensors=tensor_facts(first),
        others={k: _kind(v) for k, v in first.view().items() if not _is_numeric(v)},
        label_key=label_key(first),
        item_columns=tuple(first.view()),
        item_lengths=_lengths(first),
        text_inputs=tuple(n for n, a in name_arrays(first.x, X) if is_text(a)) if taken.first_layer else (),
        first_layer=taken.first_layer,
        collator=_former(data),
        target_keys=targets,
        targets_wanted_by=losing_at_targets(model),
        targets_found=version().has_library_step(model),
        made_floats=_made_floats(first, taken),
        weightless_rows=weightless,
        all_weightless=every,
        label_counts=tuple(c for b in formed if (c := _count(b)) is not None),
        images=image_facts(first, taken),
        equal_inputs=_equal_inputs(formed),
        evaluation_tensors=tensor_facts(held) if held is not None else {},
        **_accepted(first, taken),
        **_token_facts(formed, taken),
    )


def _kind(value: Any) -> str:
    """The type of a value that is not a tensor; for an object array, its contents: `object array of list of floats`."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.size:
        kind, is_row = type(value.flat[0]).__name__, isinstance(value.flat[0], (list, tuple, np.ndarray))
        return f"object array of {kind}{' of floats' if is_row and _holds_floats(value) else ''}"
    return type(value).__name__


def _holds_floats(value: Any) -> bool:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return bool(value.dtype.kind == "f")
    if isinstance(value, (list, tuple, np.ndarray)):
        return any(_holds_floats(part) for part in value)
    return isinstance(value, (float, np.floating))


def is_text(value: Any) -> bool:
    """Whether it is an array of texts."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "USO" or not value.size:
        return False
    return value.dtype.kind != "O" or isinstance(value.flat[0], (str, bytes))


def _lengths(batch: FitBatch) -> dict[str, tuple[int, ...]]:
    """The length of each row, for object arrays whose elements are rows."""
    arrays = {k: v for k, v in batch.view().items() if isinstance(v, np.ndarray) and v.dtype == object}
    return {
        k: tuple(len(row) for row in v)
        for k, v in arrays.items()
        if v.size and all(isinstance(row, (list, tuple, np.ndarray)) for row in v)
    }


def _former(data: FitData) -> str:
    """What forms the batches."""
    return {
        "arrays": "fit",
        "rows": "fit",
        "PyDataset": "the PyDataset",
        "DataLoader": "the DataLoader",
        "generator": "the generator",
    }.get(data.kind, data.kind)


def tensor_facts(batch: FitBatch) -> dict[str, TensorFacts]:
    """Facts about a batch's arrays, by name, except sample weights, which are not model inputs."""
    weights = dict(name_arrays(batch.sample_weight, WEIGHT))
    return {k: tensors.array_facts(v) for k, v in batch.view().items() if _is_numeric(v) and k not in weights}


def _equal_inputs(formed: Sequence[FitBatch]) -> EqualInputs | None:
    """For batches with a single target; None for texts and other inputs that are no numbers."""
    rows = [(dict(name_arrays(b.x, X)), list(target_view(b).values())) for b in formed]
    if any(len(y) != 1 or not np.ndim(y[0]) or not all(map(_is_numeric, x.values())) for x, y in rows):
        return None
    return equal_inputs([({k: np.asarray(v) for k, v in x.items()}, np.asarray(y[0])) for x, y in rows])


def _is_numeric(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iufb"


def label_key(batch: FitBatch) -> str | None:
    """The name of the only target; of several, the scalar one; without targets, that of labels among the inputs."""
    targets = target_view(batch)
    single = [n for n, a in targets.items() if np.ndim(a) and np.size(a) == len(a)]
    if targets:
        return next(iter([*(single if len(targets) > 1 else []), *targets]))
    return find_label(batch.view(), ARGUMENTS)


def _accepted(batch: FitBatch, taken: ModelInputs) -> dict[str, Any]:
    names = tuple(n for n, _ in name_arrays(batch.x, X))
    return {"accepts": taken.names or names, "accepts_any": taken.takes_any}


def _made_floats(batch: FitBatch, taken: ModelInputs) -> tuple[str, ...]:
    """Integer inputs that the model casts to float before a layer computes with them."""
    arrays = dict(name_arrays(batch.x, X))
    return tuple(
        n
        for i, (n, a) in enumerate(arrays.items())
        if np.ndim(a) and a.dtype.kind in "iu" and taken.is_float(n, i, len(arrays))
    )


def image_facts(batch: FitBatch, taken: ModelInputs) -> ImageFacts | None:
    """Facts about the first 4-D input, if the model begins with an image convolution."""
    if taken.channels_last is None:
        return None
    for name, value in name_arrays(batch.x, X):
        if np.ndim(value) == 4 and value.dtype.kind in "iuf":
            return measure_images(name, value.astype(np.float32), 3 if taken.channels_last else 1)
    return None


def _token_facts(batches: Sequence[FitBatch], taken: ModelInputs) -> dict[str, Any]:
    """Facts about token batches: `input_ids`, otherwise the input of the first embedding."""
    views = [b.view() for b in batches]
    key = _TOKENS if is_tokens(views[0].get(_TOKENS)) else next((n for n, _ in name_arrays(batches[0].x, X)), "")
    if not all(is_tokens(v.get(key)) for v in views) or (key != _TOKENS and taken.embedding_rows is None):
        return {}
    largest = max((int(v[key].max()) for v in views if v[key].size), default=None)
    facts: dict[str, Any] = {"token_key": key, "largest_token": largest}
    if taken.embedding_rows is not None:
        facts |= {"vocabulary": taken.embedding_rows, "embedding": taken.embedding}
        if not taken.masks_zero:
            facts["unmasked_zeros"] = _zeros_at_ends([v[key] for v in views])
    labels = label_key(batches[0])
    masks = [_mask(v, key, v.get(labels) if labels else None) for v in views]
    facts |= {
        "has_attention_mask": _MASK in views[0],
        "mask": masks[0],
        "masks": tuple(m for m in masks if m is not None),
    }
    if _MASK in views[0]:
        facts["padding_share"] = float(1 - np.mean(views[0][_MASK] != 0))
    return facts


def _zeros_at_ends(batches: Sequence[np.ndarray]) -> float:
    """The share of token 0 if it only follows the other tokens, in rows of several lengths; otherwise 0."""
    zeros = [tokens == 0 for tokens in batches]
    behind = all(bool((np.diff(z.astype(np.int8), axis=1) >= 0).all()) for z in zeros)
    lengths = {int(n) for z in zeros for n in z.sum(axis=1)}
    return float(np.concatenate([z.ravel() for z in zeros]).mean()) if behind and len(lengths) > 1 else 0.0


def is_tokens(value: Any) -> bool:
    """Whether it is an array of token ids: integers (rows, length)."""
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iu"


def _mask(view: Mapping[str, Any], key: str, labels: Any) -> LabelMaskFacts | None:
    """Facts about token labels with the inputs' shape; None for other labels."""
    if not is_tokens(labels) or labels.shape != view[key].shape:
        return None
    return measure_label_mask(view[key], labels, view.get(_MASK), pad_id=None, eos_id=None)


def _count(batch: FitBatch) -> Any:
    key = label_key(batch)
    labels = batch.view().get(key) if key else None
    if not _is_numeric(labels) or labels is None or not labels.ndim or not len(labels) or labels.dtype.kind not in "iu":
        return None
    return measure_label_count(labels)


def _evaluation_batch(data: FitData) -> FitBatch | None:
    """The first validation batch; an exception is reported again by the evaluation stage."""
    if data.validation is None:
        return None
    try:
        return next(iter(data.validation.pool(1)), None)
    except Exception as error:  # the user's data raised; our own errors are not hidden
        failure_of(error)
        return None
