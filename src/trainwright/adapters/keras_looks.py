"""fit's data and first batch in numbers, as far as the walk of the model needs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainwright.adapters.keras_data import FitData
from trainwright.stages.batch import BatchFacts
from trainwright.stages.census import measure_split
from trainwright.stages.dataset import DatasetFacts, Split
from trainwright.tensors import keras as tensors


def _split(name: str, data: FitData) -> Any:
    labels = data.labels(50_000)
    flat = [v.item() if v.size == 1 else v.tolist() for v in labels] if labels is not None else []
    split = Split(name=name, rows=data.length, columns={"y": flat} if flat else {}, read=len(flat))
    return measure_split(split, ["y"], ())


def measure_dataset(data: FitData) -> DatasetFacts:
    held = data.validation
    return DatasetFacts(
        train=_split("train", data),
        evaluation=_split("evaluation", held) if held is not None else None,
        shuffles=data.shuffled,
        batch_size=data.batch_size or 0,
    )


def measure_batch(data: FitData, batch: Any) -> BatchFacts:
    view = batch.view()
    return BatchFacts(
        rows=batch.rows,
        tensors={k: tensors.array_facts(v) for k, v in view.items() if isinstance(v, np.ndarray)},
        label_key="y" if "y" in view else None,
    )
