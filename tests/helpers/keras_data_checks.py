"""What is read of fit's data, against Keras's own reading of them; run by test_keras_data.py, once for each backend."""

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pandas as pd
import scipy.sparse
import torch
from keras.src.trainers.epoch_iterator import EpochIterator

from trainwright.adapters.keras.input import reading
from trainwright.adapters.keras.input.batch import measure_batch
from trainwright.adapters.keras.input.data_sets import measure_dataset
from trainwright.adapters.keras.input.fit_data import FitData, fit_data
from trainwright.adapters.keras.input.nested_values import leaves

ROWS = 100
X = np.random.default_rng(0).normal(size=(ROWS, 6))
Y = np.arange(ROWS) // 25


class Numbered(keras.utils.PyDataset):
    """Batches of 16, with noise of the data set's own."""

    def __init__(self) -> None:
        super().__init__()
        self.random, self.asked = np.random.default_rng(0), []

    def __len__(self) -> int:
        return 7

    def __getitem__(self, number: int) -> Any:
        self.asked.append(number)
        rows = slice(number * 16, number * 16 + 16)
        return X[rows] + self.random.normal(size=X[rows].shape), Y[rows]


def drawn(count: int = 7) -> Iterator[Any]:
    for number in range(count):
        yield X[number * 16 : number * 16 + 16], Y[number * 16 : number * 16 + 16]


def loader(**options: Any) -> Any:
    rows = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    return torch.utils.data.DataLoader(rows, batch_size=16, **options)


def kinds() -> dict[str, Callable[[], dict[str, Any]]]:
    """fit's arguments, one for each kind of data."""
    frame = pd.DataFrame(X, columns=list("abcdef"))
    found: dict[str, Callable[[], dict[str, Any]]] = {
        "numpy": lambda: {"x": X, "y": Y, "batch_size": 16},
        "backend": lambda: {"x": keras.ops.convert_to_tensor(X), "y": keras.ops.convert_to_tensor(Y), "batch_size": 16},
        "torch": lambda: {"x": torch.tensor(X), "y": torch.tensor(Y), "batch_size": 16},
        "structure": lambda: {"x": {"a": X, "b": [X, X[:, :2]]}, "y": [Y, X], "sample_weight": [Y * 1.0, Y * 2.0]},
        "pandas": lambda: {"x": frame, "y": pd.Series(Y), "steps_per_epoch": 7},
        "columns": lambda: {"x": {n: frame[n] for n in frame}, "y": frame[["a"]]},
        "weights": lambda: {"x": X, "y": Y, "class_weight": {0: 1.0, 2: 0.5}},
        "one-hot weights": lambda: {"x": X, "y": np.eye(4)[Y], "class_weight": {0: 1.0, 2: 0.5}},
        "sparse": lambda: {"x": scipy.sparse.csr_matrix(X), "y": Y, "batch_size": 16},
        "PyDataset": lambda: {"x": Numbered()},
        "loader": lambda: {"x": loader()},
        "generator": lambda: {"x": drawn()},
    }  # fmt: skip
    if keras.config.backend() == "tensorflow":
        tf = sys.modules["tensorflow"]
        rows = tf.data.Dataset.from_tensor_slices(({"a": X, "b": X[:, 0]}, Y))
        found["tf.data"] = lambda: {"x": rows.batch(16)}
        found["drops"] = lambda: {"x": rows.batch(16, drop_remainder=True), "class_weight": {0: 1.0, 1: 3.0, 3: 2.0}}
    return found


def check_batches_are_those_of_fit() -> None:
    for name, make in kinds().items():
        given = make()
        data = fit_data({**given, "shuffle": False})
        if name == "sparse" and keras.config.backend() == "torch":
            continue  # Keras itself has no sparse tensors there
        ours = [[np.asarray(a) for a in leaves([b.x, b.y, b.sample_weight])] for b in data.elements()]
        own = [[np.asarray(a) for a in keras.tree.flatten(b) if a is not None] for b in _own_batches(make())]
        assert len(ours) == len(own) and ours, (name, len(ours), len(own))
        for left, right in zip(ours, own):
            assert [a.shape for a in left] == [a.shape for a in right], (name, left, right)
            assert all(np.array_equal(a, np.asarray(b, dtype=a.dtype)) for a, b in zip(left, right)), name
        last = data.last_batch()
        assert last is None or last.rows == len(ours[-1][0]), name


def _own_batches(given: dict[str, Any]) -> Iterator[Any]:
    iterator = EpochIterator(**given)
    iterator.reset()
    for _, _, data in iterator.enumerate_epoch():
        yield keras.tree.map_structure(_dense, data[0], none_is_leaf=False)


def _dense(value: Any) -> Any:
    return np.asarray(value)


def check_all_kinds_give_the_same_facts() -> None:
    for name in ("numpy", "backend", "torch", "sparse", "PyDataset", "loader", "generator", "tf.data"):
        if name not in kinds():
            continue
        data = fit_data({**kinds()[name](), "epochs": 3, "shuffle": False})
        facts = measure_dataset(data, scope={})
        labels = facts.train.labels
        assert labels is not None and labels.column == "y" and labels.kind == "class", name
        assert labels.census == {0: 25, 1: 25, 2: 25, 3: 25} and facts.train.labels_complete, (name, labels)
        assert labels.mean_run == 25.0 and facts.shuffles is False and facts.batch_size == 16, (name, facts.shuffles)
        assert facts.epochs is not None and facts.epochs.batches == 7, name
        batch = measure_batch(data, _model())
        assert batch.rows == 16 and batch.label_key == "y" and batch.target_keys == ("y",), (name, batch)
        assert not batch.failure, (name, batch)


def check_validation_is_what_fit_cuts_off() -> None:
    data = fit_data({"x": X, "y": np.eye(4)[Y], "validation_split": 0.25, "batch_size": 8})
    held = data.validation
    assert held is not None and (len(data), len(held)) == (75, 25)
    facts = measure_dataset(data, scope={})
    assert facts.shuffles is True and facts.evaluation is not None
    train, tail = facts.train.labels, facts.evaluation.labels
    assert train is not None and tail is not None
    assert train.census == {0: 25, 1: 25, 2: 25} and tail.census == {3: 25}
    both = fit_data({"x": X, "y": Y, "validation_data": (X[:30].astype("float32"), Y[:30])})
    assert measure_dataset(both, scope={}).overlap == 30


def check_what_was_read_of_a_generator_is_given_to_training() -> None:
    again = fit_data({"x": drawn()})
    measure_dataset(again, scope={})
    assert [len(y) for _, y in again.for_training()["x"]] == [16] * 6 + [4]


def check_no_more_is_drawn_of_a_generator_than_may_be_kept() -> None:
    count = [0]

    def endless() -> Iterator[Any]:
        while True:
            count[0] += 1
            yield X, Y

    kept, reading.MOST_STREAM_BYTES = reading.MOST_STREAM_BYTES, 40 * (X.nbytes + Y.nbytes)
    facts = measure_dataset(fit_data({"x": endless(), "steps_per_epoch": 5}), scope={})
    reading.MOST_STREAM_BYTES = kept
    assert count[0] == 41 and facts.epochs is None and facts.train.rows is None


def check_steps_are_those_that_fit_takes() -> None:
    cases: list[tuple[Callable[[], Any], dict[str, Any]]] = [
        (lambda: X, {"y": Y, "batch_size": 10, "steps_per_epoch": 9, "epochs": 4}),
        (lambda: X, {"y": Y, "batch_size": 10, "steps_per_epoch": 4, "epochs": 6}),
        (lambda: X, {"y": Y, "batch_size": 10, "steps_per_epoch": 12, "epochs": 2}),
        (lambda: X, {"y": Y, "batch_size": 10, "epochs": 2}),
        (lambda: drawn(6), {"epochs": 3}),
        (lambda: drawn(6), {"epochs": 4, "steps_per_epoch": 3}),
        (lambda: drawn(6), {"epochs": 4, "steps_per_epoch": 10}),
        (Numbered, {"epochs": 3, "steps_per_epoch": 6}),
    ]
    if keras.config.backend() == "tensorflow":
        tf = sys.modules["tensorflow"]
        kinds_of = (tf.TensorSpec((None, 6)), tf.TensorSpec((None,), tf.int64))
        unknown = tf.data.Dataset.from_generator(drawn, output_signature=kinds_of)
        cases += [(lambda: unknown, {"epochs": 3}), (lambda: unknown, {"epochs": 4, "steps_per_epoch": 5}),
                  (lambda: unknown.repeat(2), {"epochs": 4, "steps_per_epoch": 7})]  # fmt: skip
    for make, given in cases:
        counts: list[int] = []
        model = _model()
        model.fit(make(), verbose=0, callbacks=[_Counting(counts)], **given)
        data: FitData = fit_data({"x": make(), **given})
        epochs = measure_dataset(data, scope={}).epochs
        assert epochs is not None and list(epochs.steps) == counts, (given, epochs, counts)


class _Counting(keras.callbacks.Callback):
    def __init__(self, counts: list[int]) -> None:
        super().__init__()
        self.counts = counts

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.counts.append(0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.counts[-1] += 1


def check_repairs_change_rows() -> None:
    for name in ("numpy", "PyDataset", "generator"):
        data = fit_data({**kinds()[name](), "shuffle": False})
        tens = data.changed(lambda row, number: {**row, "y": row["y"] * 10 + number % 2})
        assert _labels(tens)[:30] == [(n // 25) * 10 + n % 2 for n in range(30)], name
        assert next(iter(tens.elements())).rows == 16, name
        fewer = data.chosen([3, 40, 77])
        assert _labels(fewer) == [0, 1, 3] and len(fewer) == 3, name
        labels = _labels(data.shuffled_rows())
        assert sorted(labels) == sorted(Y) and labels != list(Y), name
    first, second = fit_data({"x": X, "y": Y}), fit_data({"x": X[:10], "y": Y[:10] + 7})
    assert _labels(first.of_several([first, second], [(1, 3), (0, 99), (1, 0)])) == [7, 3, 7]
    parted = fit_data({"x": {"a": X, "labels": Y}}).batches(1, 0)[0]
    view = parted.view()
    moved = parted.renewed({"a": view["a"], "y": view["labels"]})
    assert list(moved.x) == ["a"] and np.array_equal(moved.y, view["labels"])


def check_fit_takes_sets_that_repairs_have_changed() -> None:
    for name in ("numpy", "PyDataset", "loader", "generator"):
        arguments = {**kinds()[name](), "shuffle": False}
        changed = fit_data(arguments).batches_changed(lambda view: {**view, "y": 3 - view["y"]})
        assert changed.is_changed and _labels(changed)[:30] == [3 - n // 25 for n in range(30)], name
        counts: list[int] = []
        handed_over = {**arguments, **changed.for_training()}
        _model().fit(**handed_over, epochs=1 if name == "generator" else 2, verbose=0, callbacks=[_Counting(counts)])
        assert counts == [7] * len(counts), (name, counts)
    split = fit_data({"x": X, "y": Y, "validation_split": 0.25}).batches_changed(
        lambda view: {**view, "y": view["y"] + 1}
    )
    handed_over = split.for_training()
    assert handed_over["validation_split"] == 0.0 and list(handed_over["y"]) == list(Y[:75] + 1)
    assert list(handed_over["validation_data"][1]) == list(Y[75:] + 1)
    for name in ("numpy", "PyDataset"):
        whole = fit_data({**kinds()[name](), "batch_size": 16}).whole_batches()
        assert {batch.rows for batch in whole.elements()} == ({16} if name == "numpy" else {16, 4}), name


def _labels(data: FitData) -> list[int]:
    return [int(label) for batch in data.elements() for label in batch.y]


def check_what_models_take() -> None:
    pictures = np.random.default_rng(0).integers(0, 255, size=(40, 12, 12, 3)).astype("uint8")
    image = keras.Sequential([keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(3)])
    image.compile("adam", "sparse_categorical_crossentropy")
    data = fit_data({"x": pictures, "y": Y[:40]})
    facts = measure_batch(data, image)
    assert facts.made_floats == ("x",) and facts.targets_wanted_by == "sparse_categorical_crossentropy"
    words = keras.Input((9,))
    inner = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(50, 8)(words))
    text = keras.Model(words, keras.layers.Dense(3)(inner))
    text.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    facts = measure_batch(fit_data({"x": np.arange(90).reshape(10, 9), "y": Y[:10]}), text)
    assert (facts.vocabulary, facts.token_key, facts.largest_token) == (50, "x", 89) and not facts.made_floats
    assert facts.embedding and facts.targets_wanted_by == "sparse_categorical_crossentropy"
    alone = measure_batch(fit_data({"x": {"a": X, "labels": Y}}), text)
    assert alone.target_keys == () and alone.label_key == "labels"
    smooth = np.add.outer(np.arange(12), np.arange(12)) + np.arange(3).reshape(3, 1, 1) * 30.0
    first = measure_batch(fit_data({"x": np.stack([smooth * n for n in range(1, 9)]), "y": Y[:8]}), image)
    assert first.images is not None and (first.images.taken_at, first.images.found_at) == (3, 1)


def check_texts_are_text() -> None:
    if keras.config.backend() != "tensorflow":
        return
    texts = fit_data({"x": np.array([["good"], ["bad"]] * 8), "y": np.array(["yes", "no"] * 8, dtype=object)})
    seen = measure_dataset(texts, scope={}).train
    assert seen.labels is not None and (seen.labels.kind, seen.columns[0].kind) == ("text", "text")


def _model() -> Any:
    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Keras's, on the epochs that end early
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            check()
            print(name)
