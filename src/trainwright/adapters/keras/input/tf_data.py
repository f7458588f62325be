"""Reads a tf.data.Dataset without affecting training: shuffle seeds and caches belong to the dataset itself."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

from trainwright.adapters.keras.input.nested_values import leaves
from trainwright.adapters.keras.input.sources import Stream

# tf.data's cardinality of an infinite dataset (tf.data.INFINITE_CARDINALITY).
INFINITE = -1
# A copy includes the dataset's tensors; beyond this many bytes, copying takes too long.
LARGEST_COPY = 512 * 2**20
_KEEPS_STATE = ("Shuffle", "Cache", "Random", "Sample", "Generator", "Interleave", "FlatMap", "Map")


def source_of(dataset: Any) -> Stream:
    """The source that reads a tf.data.Dataset."""
    batches = _cardinality(dataset)
    spec = next(iter(leaves(dataset.element_spec)), None)
    size = spec.shape[0] if spec is not None and spec.shape.rank else None
    copy: list[Any] = []

    def begin() -> Iterator[Any]:
        if not copy:
            copy.append(undisturbed(dataset))
        return iter(copy[0])

    endless = batches == INFINITE
    return Stream(
        "tf.data",
        begin,
        batches=batches if batches >= 0 else None,
        batch_size=size,
        endless=endless,
        batches_repeated=_batches_repeated(dataset) if endless else None,
    )


def _cardinality(dataset: Any) -> int:
    """The dataset's number of elements; negative if it is infinite or unknown."""
    cardinality = dataset.cardinality
    return int(cardinality() if callable(cardinality) else cardinality)


def _batches_repeated(dataset: Any) -> int | None:
    """The batches in one pass over the data that a dataset repeats, found by following its inputs."""
    sizes: list[int] = []
    for made in _chain(dataset):
        kind = type(made).__name__
        before: list[Any] = getattr(made, "_inputs", list)()
        if len(before) != 1:
            return None
        if "Repeat" in kind:
            count = _cardinality(before[0])
            for rows in reversed(sizes):
                count = math.ceil(count / rows)
            return count if count > 0 else None
        if "Batch" in kind:
            if (size := getattr(made, "_batch_size", None)) is None:
                return None
            sizes.append(int(size))
    return None


def undisturbed(dataset: Any) -> Any:
    """A dataset that yields what this one will yield in its next passes, without advancing it.

    Passes over a dataset share the seeds of its shuffles and the contents of its caches, in any copy too. So the copy
    is built from its graph, with private shuffles in place of those with shared seeds, and without caches.
    """
    if not any(_may_keep_state(d) for d in _chain(dataset)) or _bytes_inside(dataset) > LARGEST_COPY:
        return dataset
    from tensorflow.core.framework import graph_pb2
    from tensorflow.python.data.ops import dataset_ops

    tf = sys.modules["tensorflow"]
    try:
        stored = dataset._as_serialized_graph(external_state_policy=tf.data.experimental.ExternalStatePolicy.IGNORE)
        graph = graph_pb2.GraphDef.FromString(stored.numpy())
        _keep_apart(graph)
        variant = tf.raw_ops.DatasetFromGraph(graph_def=graph.SerializeToString())
    except (tf.errors.OpError, ValueError):  # an operation that cannot be serialized: read the dataset itself
        return dataset
    return dataset_ops._VariantDataset(variant, dataset.element_spec)


def _keep_apart(graph: Any) -> None:
    """Stop the operations of a serialized dataset from sharing state with those of another."""
    for nodes in (graph.node, *(f.node_def for f in graph.library.function)):
        bypassed: dict[str, str] = {}
        for node in nodes:
            if node.op == "ShuffleDatasetV3":  # its fifth input is the shared seed generator
                node.op = "ShuffleDataset"
                del node.input[4:]
            elif node.op in ("CacheDataset", "CacheDatasetV2"):
                bypassed[node.name] = node.input[0]
        for node in nodes:
            for position, name in enumerate(node.input):
                while (inner := bypassed.get(name.split(":")[0])) is not None:
                    name = inner
                node.input[position] = name


def _chain(dataset: Any) -> Iterator[Any]:
    """A dataset and the datasets it was built from."""
    waiting = [dataset]
    while waiting:
        current = waiting.pop()
        yield current
        waiting += list(getattr(current, "_inputs", list)())


def _may_keep_state(dataset: Any) -> bool:
    return any(word in type(dataset).__name__ for word in _KEEPS_STATE)


def _bytes_inside(dataset: Any) -> int:
    """The size of the tensors that a dataset was built from."""
    tensors = itertools.chain.from_iterable(getattr(d, "_tensors", ()) for d in _chain(dataset))
    return sum(_bytes(t) for t in tensors)


def _bytes(tensor: Any) -> int:
    elements = tensor.shape.num_elements() or 0
    return int(elements) * (tensor.dtype.size or 16)
