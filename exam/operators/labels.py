"""Faults of the labels as they are loaded."""

import re
from collections.abc import Iterator

from exam.operators import operator
from exam.roles import Place, fresh, labels, pairs
from exam.sets import Rows, entries, returned, rows
from exam.source import Planted, Source
from exam.values import cast, chosen, filled, first_set, ordered, reversed_rows, rolled, shuffled


def _becomes(place: Place, expression: str) -> Iterator[Planted]:
    if expression:
        yield place.becomes(expression)


def _lines(place: Place, text: str) -> Iterator[Planted]:
    if text and place.form != "value":
        yield place.lines(text)


def _labelled(source: Source, *roles: str, evaluation: bool = False) -> Iterator[Rows]:
    for one in rows(source, evaluation):
        if one.label and one.role in (roles or ("classes", "numbers")):
            yield one


def _by_order(one: Rows, order: str) -> Planted:
    """The labels of a Hugging Face set in another order."""
    kept = fresh(one.source, "ordered_labels")
    text = f'{kept} = {order.replace("@", f"""list({one.name}["{one.label}"])""")}'
    change = f'{{"{one.label}": {kept}[i]}}'
    return one.lines(f"{text}\n{one.name} = {one.name}.map(lambda row, i: {change}, with_indices=True)")


@operator("misaligned-labels")
def labels_shuffled(source: Source) -> Iterator[Planted]:
    """The labels are shuffled, and the inputs are not."""
    for place in labels(source):
        yield from _becomes(place, shuffled(place))
    for one in _labelled(source, *(("several",) if "Seq2Seq" in source.text else ()), "classes", "numbers"):
        yield from [_by_order(one, "random.sample(@, len(@))")] if not one.whole else []
    for _, index, elements in returned(source):
        last = source.code(elements[-1]) if elements else ""
        if len(elements) > 1 and re.search(rf"\[{index}\]", last):
            other = re.sub(rf"\[{index}\]", f"[({index} * 7919 + 13) % len(self)]", last)
            yield source.replaced(elements[-1], other)


@operator("misaligned-labels")
def some_labels_shuffled(source: Source) -> Iterator[Planted]:
    """Four labels of ten belong to other rows."""
    for place in labels(source, "classes", "numbers"):
        n, moved = place.name, fresh(source, "moved")
        if place.kind == "tensor":
            text = f"{moved} = torch.randperm(len({n}))[: int(0.4 * len({n}))]\n{n} = {n}.clone()\n"
            yield from _lines(place, f"{text}{n}[{moved}] = {n}[{moved}.roll(1)]")
        if place.kind == "array":
            text = f"{moved} = np.random.permutation(len({n}))[: int(0.4 * len({n}))]\n{n} = {n}.copy()\n"
            yield from _lines(place, f"{text}{n}[{moved}] = {n}[np.roll({moved}, 1)]")


@operator("misaligned-labels")
def labels_one_row_late(source: Source) -> Iterator[Planted]:
    """Each row has the label of the row before it."""
    for place in labels(source):
        yield from _becomes(place, rolled(place))
    for one in _labelled(source, *(("several",) if "Seq2Seq" in source.text else ()), "classes", "numbers"):
        yield from [_by_order(one, "[*@[1:], @[0]]")] if not one.whole else []
    for _, index, elements in returned(source):
        last = source.code(elements[-1]) if elements else ""
        if len(elements) > 1 and re.search(rf"\[{index}\]", last):
            yield source.replaced(elements[-1], re.sub(rf"\[{index}\]", f"[{index} - 1]", last))


@operator("misaligned-labels", "sorted-without-shuffle")
def labels_sorted(source: Source) -> Iterator[Planted]:
    """The labels were sorted before they were joined to the rows."""
    for place in labels(source, "classes", "numbers"):
        yield from _becomes(place, ordered(place))
    for one in _labelled(source):
        yield from [_by_order(one, "sorted(@)")] if not one.whole else []


@operator("misaligned-labels")
def labels_reversed(source: Source) -> Iterator[Planted]:
    """The labels are joined from the last row to the first."""
    for place in labels(source):
        yield from _becomes(place, reversed_rows(place))


@operator("destroyed-labels", "missing-classes", "imbalanced-classes", harm="differs")
def labels_constant(source: Source) -> Iterator[Planted]:
    """All labels are the same."""
    for place in labels(source):
        yield from _becomes(place, filled(place, "0"))
    for one in _labelled(source):
        yield one.mapped(**{one.label: f'0 * row["{one.label}"]'})
    for value in entries(source, "labels"):
        if re.match(r"torch\.|self\.\w+\[|int\(|float\(", source.code(value)):
            yield source.replaced(value, f"0 * {source.code(value)}")


@operator("destroyed-labels", "missing-classes", "wrong-target-dtype", harm="differs")
def labels_cast_away(source: Source) -> Iterator[Planted]:
    """A cast leaves little of the labels: numbers are cut to integers, classes to true and false."""
    for place in labels(source):
        n = place.name
        if place.role == "numbers" or (place.role == "several" and place.type.startswith("float")):
            kept = {"tensor": f"{n}.long().float()", "array": f"{n}.astype(int).astype({n}.dtype)"}
            yield from _becomes(place, kept.get(place.kind, f"{n}.astype(int)"))
        elif place.role == "classes":
            yield from _becomes(place, cast(place, "bool().long", "bool"))
    for one in _labelled(source, "classes"):
        yield one.mapped(**{one.label: f'int(bool(row["{one.label}"]))'})


_RANGE = ("label-out-of-range", "misnumbered-labels", "binary-targets-out-of-range")


@operator(*_RANGE)
def labels_from_one(source: Source) -> Iterator[Planted]:
    """The classes are numbered from one."""
    for place in labels(source, "classes"):
        yield from _becomes(place, f"{place.name} + 1")
    for one in _labelled(source, "classes"):
        yield one.mapped(**{one.label: f'row["{one.label}"] + 1'})
    for value in entries(source, "labels"):
        if re.match(r"torch\.tensor\(|self\.y|self\.labels|int\(", source.code(value)):
            yield source.replaced(value, f"{source.code(value)} + 1")


@operator(*_RANGE, "unignored-labels")
def labels_from_minus_one(source: Source) -> Iterator[Planted]:
    """The classes are numbered from minus one."""
    for place in labels(source, "classes"):
        yield from _becomes(place, f"{place.name} - 1")
    for one in _labelled(source, "classes"):
        yield one.mapped(**{one.label: f'row["{one.label}"] - 1'})


@operator(*_RANGE)
def one_foreign_label(source: Source) -> Iterator[Planted]:
    """One row has a class that the model does not have."""
    for place in labels(source, "classes"):
        if place.shape:
            yield from _lines(place, first_set(place, f"{place.classes or 1000}", "-1"))


@operator(*_RANGE, "unignored-labels")
def one_unlabelled_row(source: Source) -> Iterator[Planted]:
    """One row without a label has the class -1."""
    for place in labels(source, "classes"):
        if place.shape:
            yield from _lines(place, first_set(place, "-1", "len(@) // 2".replace("@", place.name)))
    for one in _labelled(source, "classes"):
        text = f'{{"{one.label}": row["{one.label}"] if i != 7 else -1}}'
        yield one.lines(f"{one.name} = {one.name}.map(lambda row, i: {text}, with_indices=True)")


@operator("string-labels")
def labels_as_text(source: Source) -> Iterator[Planted]:
    """The labels are text."""
    for place in labels(source, "classes", whole=True):
        if place.kind != "tensor":
            yield from _becomes(place, f"{place.name}.astype(str)")
    for one in _labelled(source, "classes"):
        kept = fresh(source, "texts")
        text = f'{kept} = [f"class {{label}}" for label in {one.name}["{one.label}"]]'
        if not one.whole or any(v.name == one.name and v.kind == "rows" for v in source.variables):
            column = f'{one.name}.remove_columns("{one.label}").add_column("{one.label}", {kept})'
            yield one.lines(f"{text}\n{one.name} = {column}")


@operator("wrong-target-dtype", "sparse-dense-mismatch")
def labels_as_floats(source: Source) -> Iterator[Planted]:
    """The classes are floats."""
    for place in labels(source, "classes"):
        if not place.type.startswith("float"):
            yield from _becomes(place, cast(place, "float", "float32"))
    for one in _labelled(source, "classes"):
        kept = fresh(source, "floats")
        if not one.whole:
            column = f'{one.name}.remove_columns("{one.label}").add_column("{one.label}", {kept})'
            text = f'{kept} = [float(label) for label in {one.name}["{one.label}"]]'
            yield one.lines(f"{text}\n{one.name} = {column}")


@operator("sparse-dense-mismatch", "wrong-target-dtype", "broadcast-loss", "column-labels", "swapped-targets")
def labels_one_hot(source: Source) -> Iterator[Planted]:
    """The labels are one-hot rows where the loss takes class numbers."""
    for place in labels(source, "classes"):
        if place.classes and place.classes > 2:
            one_hot = {
                "tensor": f"torch.nn.functional.one_hot({place.name}.long(), {place.classes})",
                "array": f"np.eye({place.classes}, dtype=int)[{place.name}]",
            }
            yield from _becomes(place, one_hot.get(place.kind, ""))
    for one in _labelled(source, "classes"):
        yield one.mapped(**{one.label: f'[int(row["{one.label}"] == k) for k in range(3)]'})


@operator("sparse-dense-mismatch", "wrong-target-dtype", "broadcast-loss", "crashing-metrics", "broadcast-metric")
def labels_as_numbers(source: Source) -> Iterator[Planted]:
    """The labels are class numbers where the loss takes one column for each class."""
    for place in labels(source, "several"):
        if len(place.shape) == 2 and place.distinct == 2:
            yield from _becomes(place, f"{place.name}.argmax(1)")
    for call in source.calls("to_categorical"):
        yield source.replaced(call, call.args[0].value)


@operator("column-labels", "sparse-dense-mismatch", "broadcast-loss", "broadcast-metric", "wrong-target-dtype")
def labels_as_a_column(source: Source) -> Iterator[Planted]:
    """The labels have an axis that they should not have, or lack the one they should have."""
    for place in labels(source, "classes", "numbers"):
        if len(place.shape) == 1 and place.kind != "series":
            yield from _becomes(place, f"{place.name}[:, None]")
        elif len(place.shape) == 2 and place.shape[1] == 1:
            yield from _becomes(place, f"{place.name}[:, 0]")


@operator("unscaled-targets", "excessive-learning-rate", "non-finite-loss", "exploding-gradients")
def targets_times_1000(source: Source) -> Iterator[Planted]:
    """The targets are in thousandths of their unit."""
    for place in labels(source, "numbers"):
        yield from _becomes(place, f"{place.name} * 1000")
    for one in _labelled(source, "numbers"):
        yield one.mapped(**{one.label: f'row["{one.label}"] * 1000.0'})


@operator("unscaled-targets", "label-out-of-range", "misnumbered-labels", "misaligned-labels")
def labels_are_row_numbers(source: Source) -> Iterator[Planted]:
    """The labels are read from the column of row numbers."""
    for place in labels(source, "classes", "numbers", whole=True):
        n = place.name
        numbers = {"tensor": f"torch.arange(len({n})).to({n}.dtype)", "array": f"np.arange(len({n})).astype({n}.dtype)"}
        if len(place.shape) == 1:
            yield from _becomes(place, numbers.get(place.kind, ""))
    for one in _labelled(source):
        text = f'{{"{one.label}": i}}'
        yield one.lines(f"{one.name} = {one.name}.map(lambda row, i: {text}, with_indices=True)")


@operator("missing-classes", "imbalanced-classes")
def class_missing_from_training(source: Source) -> Iterator[Planted]:
    """All rows of one class are dropped from the training rows."""
    for x, y in pairs(source):
        if y.role == "classes" and x.kind != "series" and y.kind != "series" and (y.distinct or 0) > 2:
            kept = f"{y.name} != {y.name}.max()"
            yield from _lines(x, f"{x.name}, {y.name} = {x.name}[{kept}], {y.name}[{kept}]")
    for one in _labelled(source, "classes"):
        if not one.whole:
            yield one.lines(f'{one.name} = {one.name}.filter(lambda row: row["{one.label}"] != 1)')


@operator("imbalanced-classes", "missing-classes")
def one_class_dominates(source: Source) -> Iterator[Planted]:
    """Of all classes but one, only every thirtieth row is left."""
    for x, y in pairs(source):
        if y.role != "classes" or "series" in (x.kind, y.kind) or len(y.shape) != 1:
            continue
        count = {"tensor": f"torch.arange(len({y.name}))", "array": f"np.arange(len({y.name}))"}[y.kind]
        kept = fresh(source, "kept")
        text = f"{kept} = ({y.name} == 0) | ({count} % 30 == 0)\n"
        yield from _lines(x, f"{text}{x.name}, {y.name} = {chosen(x, kept)}, {chosen(y, kept)}")
    for one in _labelled(source, "classes"):
        if not one.whole:
            test = f'lambda row, i: row["{one.label}"] == 0 or i % 30 == 0'
            yield one.lines(f"{one.name} = {one.name}.filter({test}, with_indices=True)")


@operator("misaligned-labels")
def rare_class_mislabelled(source: Source) -> Iterator[Planted]:
    """Most rows of one class are labelled as another one."""
    for place in labels(source, "classes"):
        n = place.name
        if len(place.shape) == 1 and place.kind in ("tensor", "array"):
            drawn = f"torch.rand(len({n})) < 0.8" if place.kind == "tensor" else f"np.random.rand(len({n})) < 0.8"
            copied = f"{n} = {n}.clone()" if place.kind == "tensor" else f"{n} = {n}.copy()"
            yield from _lines(place, f"{copied}\n{n}[({n} == {n}.max()) & ({drawn})] = 0")


@operator("non-finite-data", "non-finite-loss", "run-diverged", "non-finite-gradients")
def one_target_missing(source: Source) -> Iterator[Planted]:
    """One target is NaN."""
    for place in labels(source, "numbers", "several"):
        if place.type.startswith("float"):
            yield from _lines(place, first_set(place, 'float("nan")', "0" if place.batch else "3"))
    for one in _labelled(source, "numbers"):
        text = f'{{"{one.label}": row["{one.label}"] if i != 7 else float("nan")}}'
        yield one.lines(f"{one.name} = {one.name}.map(lambda row, i: {text}, with_indices=True)")


@operator("extreme-values", "unscaled-targets", "exploding-gradients", "non-finite-loss", "excessive-learning-rate")
def one_extreme_target(source: Source) -> Iterator[Planted]:
    """One target is a typing error: a million."""
    for place in labels(source, "numbers"):
        yield from _lines(place, first_set(place, "1e6", "0" if place.batch else "3") if place.shape else "")


@operator("misaligned-labels", harm="differs")
def evaluation_labels_shuffled(source: Source) -> Iterator[Planted]:
    """The labels of the evaluation rows are shuffled, as by a loader of their own."""
    for place in labels(source, evaluation=True):
        yield from _becomes(place, shuffled(place))
    for one in _labelled(source, "classes", "numbers", "several", evaluation=True):
        yield _by_order(one, "random.sample(@, len(@))")


@operator("misaligned-labels", "misnumbered-labels", harm="differs")
def evaluation_classes_numbered_otherwise(source: Source) -> Iterator[Planted]:
    """The classes of the evaluation rows were numbered by another encoder."""
    for place in labels(source, "classes", evaluation=True):
        yield from _becomes(place, f"{place.name}.max() - {place.name}" if place.kind != "list" else "")
    for one in _labelled(source, "classes", evaluation=True):
        yield one.mapped(**{one.label: f'(row["{one.label}"] + 1) % 3'})


@operator("misaligned-labels", harm="differs")
def evaluation_label_columns_in_another_order(source: Source) -> Iterator[Planted]:
    """The columns of the evaluation labels stand in another order."""
    for place in labels(source, "several", evaluation=True):
        if len(place.shape) == 2 and place.kind in ("tensor", "array"):
            flipped = f"torch.flip({place.name}, (1,))" if place.kind == "tensor" else f"{place.name}[:, ::-1].copy()"
            yield from _becomes(place, flipped)
