"""Faults of the inputs as they are loaded."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.roles import Place, counterparts, fresh, inputs, is_evaluation, pairs, role_of
from exam.source import Planted, Source, number
from exam.values import filled, first_set, shuffled

_BROKEN = ("non-finite-loss", "non-finite-activation", "exploding-gradients", "non-finite-gradients")
_SHAPES = ("layer-size-mismatch", "wrong-number-of-axes", "script-stopped")


def _becomes(place: Place, expression: str) -> Iterator[Planted]:
    if expression:
        yield place.becomes(expression)


def _lines(place: Place, text: str) -> Iterator[Planted]:
    if text and place.form != "value" and place.kind in ("tensor", "array"):
        yield place.lines(text)


def _copied(place: Place) -> str:
    return f"{place.name} = {place.name}.{'clone' if place.kind == 'tensor' else 'copy'}()\n"


@operator("misaligned-labels")
def inputs_shuffled(source: Source) -> Iterator[Planted]:
    """The rows of the inputs are shuffled, and their labels are not."""
    for place in inputs(source, "inputs", "tokens"):
        yield from _becomes(place, shuffled(place))


_EMPTY = ("equal-inputs", "duplicate-examples", "ignored-input", "constant-output", "identical-units", "dead-units")


@operator(*_EMPTY)
def inputs_zero(source: Source) -> Iterator[Planted]:
    """The inputs are zeros: the array was made and never filled."""
    for place in inputs(source):
        yield from _becomes(place, filled(place, "0"))


@operator("equal-inputs", "duplicate-examples", "ignored-input", "constant-output")
def one_row_for_all(source: Source) -> Iterator[Planted]:
    """All rows have the inputs of the first one."""
    for place in inputs(source, "inputs", "tokens"):
        n = place.name
        same = f"{n}[:1].expand_as({n}).clone()" if place.kind == "tensor" else f"np.repeat({n}[:1], len({n}), axis=0)"
        yield from _becomes(place, same)


@operator("duplicate-examples", "unlearnable-batch", "misaligned-labels")
def ten_distinct_rows(source: Source) -> Iterator[Planted]:
    """Ten rows of inputs are repeated beside the labels of all rows."""
    for place in inputs(source, "inputs", "tokens", whole=True):
        count = f"torch.arange(len({place.name}))" if place.kind == "tensor" else f"np.arange(len({place.name}))"
        yield from _becomes(place, f"{place.name}[{count} % 10]")


@operator("duplicate-examples", "few-distinct-rows", "missing-classes", "imbalanced-classes")
def many_duplicates(source: Source) -> Iterator[Planted]:
    """The training rows are twelve distinct ones, repeated with their labels."""
    for x, y in pairs(source):
        if x.kind in ("tensor", "array") and y.kind in ("tensor", "array"):
            count = {"tensor": f"torch.arange(len({y.name}))", "array": f"np.arange(len({y.name}))"}[y.kind]
            taken = fresh(source, "taken")
            yield from _lines(x, f"{taken} = {count} % 12\n{x.name}, {y.name} = {x.name}[{taken}], {y.name}[{taken}]")


@operator("contradictory-labels", "duplicate-examples", "unlearnable-batch")
def contradictory_rows(source: Source) -> Iterator[Planted]:
    """Two rows each have the same inputs and labels of their own."""
    for place in inputs(source, "inputs", "tokens", whole=True):
        count = f"torch.arange(len({place.name}))" if place.kind == "tensor" else f"np.arange(len({place.name}))"
        yield from _becomes(place, f"{place.name}[{count} // 2 * 2]")


@operator("duplicate-examples", "ignored-input")
def empty_rows(source: Source) -> Iterator[Planted]:
    """Half of the rows are empty: what was not found was filled with zeros."""
    for place in inputs(source):
        yield from _lines(place, f"{_copied(place)}{place.name}[::2] = 0")


# Scales --------------------------------------------------------------------------------------------------------------


def _scalings(source: Source) -> Iterator[tuple[cst.BaseExpression, str]]:
    """Expressions that scale inputs, and what they scale."""
    for call in source.calls("fit_transform", "transform", "scale", "scaler", "normalize", "standardize"):
        owner = source.code(call.func)
        if call.args and re.search(r"scal|norm|std|standard", owner, re.IGNORECASE) and "F." not in owner:
            yield call, source.code(call.args[0].value)
    for division in source.find(m.BinaryOperation(operator=m.Divide())):
        left, by = source.code(division.left), number(division.right)
        pixels = by in (16.0, 255.0, 15.0, 256.0) and "loss" not in left
        spread = re.search(r"\bstd|\.std\(|sigma|\bsd\b", source.code(division.right))
        if pixels or (spread and re.search(r"x|feat|data|table|image|pixel", left, re.IGNORECASE)):
            inner = division.left
            bare = inner.left if isinstance(inner, cst.BinaryOperation) and spread else inner
            yield division, source.code(bare)
    for call in source.method_calls("div"):
        if call.args and number(call.args[0].value):
            assert isinstance(call.func, cst.Attribute)
            yield call, source.code(call.func.value)
    for call in source.calls("Rescaling"):
        if call.args and call.args[0].value:
            yield call.args[0].value, "1.0"


@operator("unscaled-inputs", "excessive-learning-rate", "saturated-units", "exploding-gradients")
def scaling_lost(source: Source) -> Iterator[Planted]:
    """The step that scales the inputs is missing."""
    found = [(n, t) for n, t in _scalings(source) if role_of(t, (1, 1), "float32", None) != "several"]
    nodes = [node for node, _ in found]
    outer = [(n, t) for n, t in found if not any(n is not o and m.findall(o, _Same(n)) for o in nodes)]
    if len(outer) > 1:
        yield source.replaced_all(outer, "without scaling: " + "; ".join(source.code(n) for n, _ in outer))
    elif outer:
        yield source.replaced(*outer[0])


def _Same(node: cst.CSTNode) -> m.BaseMatcherNode:
    return m.MatchIfTrue(lambda other: other is node)  # type: ignore[return-value]


@operator("unscaled-inputs", "excessive-learning-rate", "saturated-units", "exploding-gradients")
def inputs_not_divided(source: Source) -> Iterator[Planted]:
    """The inputs are as they were measured, a thousand times as large."""
    for place in inputs(source):
        if not place.type.startswith("uint") and place.form == "after":
            yield from _becomes(place, f"{place.name} * 1000")


@operator("unscaled-inputs", "saturated-units", "exploding-gradients", "excessive-learning-rate")
def one_column_in_another_unit(source: Source) -> Iterator[Planted]:
    """One column is in another unit, a hundred thousand times as large as the others."""
    for place in inputs(source):
        if len(place.shape) == 2 and place.shape[1] < 200 and not place.type.startswith("uint"):
            yield from _lines(place, f"{_copied(place)}{place.name}[:, 0] *= 1e5")


@operator("inputs-scaled-twice", "differently-scaled-sets")
def scaled_twice(source: Source) -> Iterator[Planted]:
    """Inputs that are between 0 and 1 are divided by 255 once more."""
    for place in inputs(source, whole=True):
        low, high = place.range
        if high is not None and low is not None and low >= 0 and 0.5 < high <= 1.5:
            yield from _becomes(place, f"{place.name} / 255.0")
    for division, what in _scalings(source):
        if isinstance(division, cst.BinaryOperation) and number(division.right) == 255.0:
            yield source.replaced(division, f"{what} / 255.0 / 255.0")


@operator("differently-scaled-sets", harm="differs")
def evaluation_not_scaled(source: Source) -> Iterator[Planted]:
    """The inputs are scaled in training and raw in evaluation."""
    for call in source.method_calls("transform"):
        if call.args and is_evaluation(source.code(call.args[0].value)):
            yield source.replaced(call, call.args[0].value)
    for place in inputs(source, evaluation=True):
        if place.range[1] is not None and place.range[1] <= 1.5 and place.distinct and place.range[0] == 0.0:
            yield from _becomes(place, f"{place.name} * 255")


@operator("differently-scaled-sets", "unscaled-inputs")
def training_not_scaled(source: Source) -> Iterator[Planted]:
    """The evaluation rows are scaled, and the training rows are raw."""
    for call in source.method_calls("fit_transform"):
        owner = source.code(call.func.value) if isinstance(call.func, cst.Attribute) else ""
        line = source.statement(call)
        if owner.isidentifier() and call.args and source.code(line).count(f"{owner}.") > 1:
            raw = source.code(call.args[0].value)
            if raw.isidentifier():
                yield source.replaced(call, f"({owner}.fit({raw}), {raw})[1]")
    for train, held in counterparts(source):
        if (
            train.role == "inputs"
            and train.range[1] is not None
            and 0 < train.range[1] <= 1.5
            and train.range[0] == 0.0
        ):
            if train.node is held.node or train.form == "after":
                yield from _becomes(train, f"{train.name} * 255")


@operator("differently-scaled-sets", harm="differs")
def scaler_fitted_on_each_set(source: Source) -> Iterator[Planted]:
    """The evaluation rows are scaled by their own mean and deviation, those of a few rows."""
    for call in source.method_calls("transform"):
        if call.args and is_evaluation(source.code(call.args[0].value)) and isinstance(call.func, cst.Attribute):
            yield source.replaced(call.func.attr, "fit_transform")


# Values --------------------------------------------------------------------------------------------------------------


@operator("non-finite-data", "run-diverged", *_BROKEN)
def one_nan(source: Source) -> Iterator[Planted]:
    """One value of the inputs is NaN."""
    for place in inputs(source):
        if place.shape and not place.type.startswith("uint"):
            yield from _lines(place, first_set(place, 'float("nan")', "0" if place.batch else "5"))


@operator("non-finite-data", "run-diverged", *_BROKEN)
def one_infinity(source: Source) -> Iterator[Planted]:
    """One value of the inputs is infinite, from a division by zero."""
    for place in inputs(source):
        if place.shape and not place.type.startswith("uint"):
            yield from _lines(place, first_set(place, 'float("inf")', "0" if place.batch else "5"))


@operator("extreme-values", "unscaled-inputs", "excessive-learning-rate", *_BROKEN)
def one_extreme_value(source: Source) -> Iterator[Planted]:
    """One value of the inputs is a million: a missing one was coded so."""
    for place in inputs(source):
        if place.shape and not place.type.startswith("uint"):
            yield from _lines(place, first_set(place, "1e6", "0" if place.batch else "5"))


@operator("misaligned-labels")
def columns_shuffled_one_by_one(source: Source) -> Iterator[Planted]:
    """Each column is shuffled by itself, so that no row is a row any more."""
    for place in inputs(source):
        if len(place.shape) == 2:
            column, n = fresh(source, "column"), place.name
            drawn = f"torch.randperm(len({n}))" if place.kind == "tensor" else f"np.random.permutation(len({n}))"
            loop = f"for {column} in range({n}.shape[1]):\n    {n}[:, {column}] = {n}[{drawn}, {column}]"
            yield from _lines(place, _copied(place) + loop)


@operator("held-out-at-constant", "differently-scaled-sets", harm="differs")
def evaluation_columns_in_another_order(source: Source) -> Iterator[Planted]:
    """The columns of the evaluation rows stand in another order than those of the training rows."""
    for place in inputs(source, evaluation=True):
        if len(place.shape) == 2:
            flipped = f"torch.flip({place.name}, (1,))" if place.kind == "tensor" else f"{place.name}[:, ::-1].copy()"
            yield from _becomes(place, flipped)


@operator("label-among-inputs", harm="differs")
def label_among_the_inputs(source: Source) -> Iterator[Planted]:
    """A column of the inputs holds the label."""
    for x, y in pairs(source):
        if len(x.shape) == 2 and len(y.shape) == 1 and x.role == "inputs" and x.kind == y.kind:
            yield from _lines(x, f"{_copied(x)}{x.name}[:, 0] = {y.name}")


@operator("duplicate-examples", "constant-output", "missing-classes", "unscaled-inputs")
def cut_to_integers(source: Source) -> Iterator[Planted]:
    """The scaled inputs are cut to integers."""
    for place in inputs(source):
        high = place.range[1]
        if place.type.startswith("float") and (high is None or high < 50):
            cut = (
                f"{place.name}.int().float()"
                if place.kind == "tensor"
                else f'{place.name}.astype("uint8").astype("float32")'
            )
            yield from _becomes(place, cut)


@operator(*_SHAPES, "wrong-target-dtype")
def inputs_of_double_precision(source: Source) -> Iterator[Planted]:
    """The inputs are doubles, as numpy makes them, where the model has floats."""
    for place in inputs(source):
        if place.type == "float32" and place.kind == "tensor":
            yield from _becomes(place, f"{place.name}.double()")


# Axes ----------------------------------------------------------------------------------------------------------------


@operator("channels-misplaced", *_SHAPES)
def channels_misplaced(source: Source) -> Iterator[Planted]:
    """The axis of the channels is moved: last where it should be first, or first where it should be last."""
    for place in inputs(source):
        if len(place.shape) == 4:
            to, n = (1, -1) if place.shape[1] <= 4 else (-1, 1), place.name
            call = "torch.movedim" if place.kind == "tensor" else "np.moveaxis"
            yield from _becomes(place, f"{call}({n}, {to[0]}, {to[1]})")
            turned = (0, 2, 3, 1) if to == (1, -1) else (0, 3, 1, 2)
            shape = ", ".join(f"{n}.shape[{i}]" for i in turned)
            yield from _becomes(place, f"{n}.reshape({shape})")


@operator("misaligned-labels", "crossed-samples", "channels-misplaced")
def reshaped_in_the_wrong_order(source: Source) -> Iterator[Planted]:
    """The table was laid out by columns and reshaped by rows, which mixes the rows."""
    for place in inputs(source):
        if len(place.shape) >= 2:
            n = place.name
            laid = f"{n}.flatten(1).T.reshape({n}.shape)" if place.kind == "tensor" else f"{n}.T.reshape({n}.shape)"
            yield from _becomes(place, laid)


@operator("crossed-samples", "ragged-batch", "fixed-batch-size", "swapped-targets", "channels-misplaced", *_SHAPES)
def batch_and_time_swapped(source: Source) -> Iterator[Planted]:
    """The axes of the rows and of the time steps are swapped."""
    for place in inputs(source, "inputs", "tokens"):
        if place.batch and (len(place.shape) == 3 or place.role == "tokens"):
            yield from _becomes(place, f"{place.name}.transpose(0, 1)")
    for argument in source.find(m.Arg(keyword=m.Name("batch_first"), value=m.Name("True"))):
        yield source.replaced(argument.value, "False")


# Wrong ones, and augmentation ----------------------------------------------------------------------------------------


@operator("misaligned-labels", "layer-size-mismatch", "ragged-batch")
def inputs_of_the_wrong_set(source: Source) -> Iterator[Planted]:
    """The training labels stand beside the inputs of the evaluation set."""
    for train, held in counterparts(source):
        if train.role == "inputs" and train.form == "after":
            short = f"len({train.name})"
            count = f"torch.arange({short})" if train.kind == "tensor" else f"np.arange({short})"
            yield from _becomes(train, f"{held.name}[{count} % len({held.name})]")
            for call in source.calls("TensorDataset", "fit"):
                for argument in call.args[:1]:
                    if source.code(argument.value) == train.name and source.scope(call) == train.scope:
                        yield source.replaced(argument.value, held.name)


@operator("duplicate-examples", "ignored-input", "constant-output")
def augmentation_blanks(source: Source) -> Iterator[Planted]:
    """The augmentation erases nearly all of each training row."""
    for place in inputs(source):
        if place.batch and place.kind == "tensor" and place.type.startswith("float"):
            n = place.name
            yield place.becomes(f"{n} * (torch.rand(len({n}), *[1] * ({n}.dim() - 1)) > 0.97).to({n}.dtype)")
    for call in source.calls("RandomTranslation", "RandomRotation", "RandomZoom", "RandomErasing"):
        yield source.replaced_all([(a.value, "0.99") for a in call.args if number(a.value)], "factors of 0.99")
    for call in source.method_calls("roll"):
        if "image" in source.code(call) or "picture" in source.code(call):
            yield source.replaced(call, f"{source.code(call)} * 0")
