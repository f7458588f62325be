"""Faults of the loss: which one it is, and what it is given."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.parts import (
    LOSSES,
    UNLEARNT,
    beside,
    compiles,
    in_evaluation,
    is_keras,
    keras_losses,
    last_layers,
    loss_calls,
    loss_objects,
    stacks,
)
from exam.source import Planted, Source, called, keyword, number

_ACTIVATED = {"classes": "softmax(1)", "logits": "sigmoid()"}


@operator("double-activation", "wrong-logits-flag")
def activation_before_the_loss(source: Source) -> Iterator[Planted]:
    """The outputs pass through a softmax or sigmoid on their way to a loss that applies one itself."""
    for found in loss_calls(source, "classes", "logits"):
        yield source.replaced(found.output, f"({source.code(found.output)}).{_ACTIVATED[found.kind]}")


@operator("double-activation", "wrong-logits-flag")
def activation_ends_the_model(source: Source) -> Iterator[Planted]:
    """The model ends with a softmax or sigmoid, although the loss applies one itself."""
    kinds = {f.kind for f in loss_calls(source)}
    for stack in stacks(source) if not is_keras(source) and kinds in ({"classes"}, {"logits"}) else ():
        last = stack.items[-1].value
        if isinstance(last, cst.Call) and called(last) == "Linear":
            text = beside(source, last, "Softmax(dim=1)" if "classes" in kinds else "Sigmoid()")
            new = stack.with_items([*stack.items, stack.item(text)])
            yield source.swapped(stack.call, new, source.line(stack.items[-1]), f"{text} behind {source.code(last)}")
    if "from_logits=True" in source.text:
        for call in last_layers(source):
            if not keyword(call, "activation"):
                name = "sigmoid" if "BinaryCrossentropy" in source.text else "softmax"
                yield source.argument(call, "activation", f'"{name}"')


@operator("wrong-logits-flag", "missing-activation", "double-activation")
def from_logits_flipped(source: Source) -> Iterator[Planted]:
    """from_logits says the contrary of what the model's outputs are."""
    for node, name in keras_losses(source):
        if name in ("MeanSquaredError", "MeanAbsoluteError"):
            continue
        if isinstance(node, cst.SimpleString):
            yield source.replaced(node, f"keras.losses.{name}(from_logits=True)")
        elif isinstance(node, cst.Call):
            yield source.argument(node, "from_logits", None if keyword(node, "from_logits") else "True")


@operator("missing-activation", "wrong-logits-flag", "binary-targets-out-of-range", "non-finite-loss")
def activation_missing_before_the_loss(source: Source) -> Iterator[Planted]:
    """A loss that expects probabilities or their logarithms gets raw scores."""
    for call in loss_objects(source, "classes"):
        if not {a.keyword.value for a in call.args if a.keyword} & {"label_smoothing"}:
            yield source.replaced(call.func, source.code(call.func).replace("CrossEntropyLoss", "NLLLoss"))
    for call in source.calls("cross_entropy", "log_softmax"):
        if called(call) == "cross_entropy" and not keyword(call, "label_smoothing"):
            yield source.replaced(call.func, source.code(call.func).replace("cross_entropy", "nll_loss"))
        elif called(call) == "log_softmax" and isinstance(call.func, cst.Attribute):
            yield source.replaced(call, call.args[0].value if len(call.args) > 1 else call.func.value)
    for call in loss_objects(source, "logits"):
        if not call.args:
            yield source.replaced(call.func, source.code(call.func).replace("BCEWithLogitsLoss", "BCELoss"))
    for call in last_layers(source) if is_keras(source) else ():
        activation = keyword(call, "activation")
        if activation and source.code(activation.value).strip("'\"") in ("softmax", "sigmoid"):
            yield source.argument(call, "activation", None)


@operator("double-activation", "wrong-logits-flag")
def logits_loss_of_probabilities(source: Source) -> Iterator[Planted]:
    """A loss of logits gets the probabilities that the model returns."""
    for call in loss_objects(source, "probabilities"):
        yield source.replaced(call.func, source.code(call.func).replace("BCELoss", "BCEWithLogitsLoss"))
    for found in loss_calls(source, "probabilities"):
        if called(found.call) == "binary_cross_entropy":
            yield source.replaced(found.call.func, source.code(found.call.func) + "_with_logits")


def _other_loss(source: Source, kind: str, classes: str, function: str) -> Iterator[Planted]:
    for call in loss_objects(source, kind):
        if not call.args:
            yield source.replaced(call.func, re.sub(r"\w+$", classes, source.code(call.func)))
    for found in loss_calls(source, kind):
        if called(found.call).islower() and called(found.call) in (
            "cross_entropy",
            "mse_loss",
            "binary_cross_entropy_with_logits",
        ):
            if len(found.call.args) == 2:
                yield source.replaced(found.call.func, re.sub(r"\w+$", function, source.code(found.call.func)))


def _other_keras_loss(source: Source, names: tuple[str, ...], by: str) -> Iterator[Planted]:
    for node, name in keras_losses(source):
        if name in names:
            yield source.replaced(node, by)


@operator("broadcast-loss", "wrong-target-dtype")
def error_of_numbers_on_classes(source: Source) -> Iterator[Planted]:
    """Classes are trained with a squared error."""
    yield from _other_loss(source, "classes", "MSELoss", "mse_loss")
    yield from _other_loss(source, "logits", "MSELoss", "mse_loss")
    yield from _other_keras_loss(source, ("SparseCategoricalCrossentropy", "CategoricalCrossentropy"), '"mse"')


@operator(
    "constant-loss", "class-loss-of-one-score", "one-unit-softmax", "wrong-head", "wrong-target-dtype",
    "label-out-of-range", "binary-targets-out-of-range", "sparse-dense-mismatch", "column-labels", "misnumbered-labels",
)  # fmt: skip
def class_loss_on_numbers(source: Source) -> Iterator[Planted]:
    """Numbers are trained with a cross-entropy."""
    yield from _other_loss(source, "numbers", "CrossEntropyLoss", "cross_entropy")
    yield from _other_loss(source, "numbers", "BCEWithLogitsLoss", "binary_cross_entropy_with_logits")
    for by in ('"sparse_categorical_crossentropy"', '"binary_crossentropy"'):
        yield from _other_keras_loss(source, ("MeanSquaredError", "MeanAbsoluteError"), by)


@operator(
    "class-loss-of-one-score", "one-unit-softmax", "constant-loss", "wrong-target-dtype", "softmax-on-multilabel",
    "sparse-dense-mismatch", "column-labels", "wrong-head", "wrong-logits-flag",
)  # fmt: skip
def class_loss_on_yes_or_no(source: Source) -> Iterator[Planted]:
    """Answers of yes or no, in one column or several, are trained with the loss of exclusive classes."""
    yield from _other_loss(source, "logits", "CrossEntropyLoss", "cross_entropy")
    yield from _other_loss(source, "probabilities", "CrossEntropyLoss", "cross_entropy")
    yield from _other_keras_loss(source, ("BinaryCrossentropy",), '"categorical_crossentropy"')


@operator(
    "sparse-dense-mismatch", "label-out-of-range", "broadcast-loss", "binary-targets-out-of-range", "column-labels"
)
def sparse_and_dense_confused(source: Source) -> Iterator[Planted]:
    """The loss for one-hot rows gets class indices, or the reverse."""
    pairs = {"SparseCategoricalCrossentropy": "CategoricalCrossentropy"}
    pairs |= {b: a for a, b in pairs.items()}
    for node, name in keras_losses(source):
        if name in pairs and isinstance(node, cst.Call):
            if not any(keyword(node, k) for k in ("ignore_class", "label_smoothing")):
                yield source.replaced(node, source.code(node).replace(name, pairs[name], 1))
        elif name in pairs:
            text = source.code(node)
            yield source.replaced(
                node, text.replace("sparse_", "") if "sparse" in text else text.replace("cat", "sparse_cat", 1)
            )
    for call in source.calls("to_categorical", "one_hot"):
        yield source.replaced(call, call.args[0].value)
    for found in loss_calls(source, "classes"):
        if isinstance(found.target, cst.Name):
            name = found.target.value
            yield source.replaced(found.target, f"{name}.reshape(-1, 1).eq({name}.unique()).long()")


@operator(
    "excessive-learning-rate",
    "exploding-gradients",
    "unscaled-accumulation",
    "surprising-initial-loss",
    "non-finite-loss",
)
def loss_summed(source: Source) -> Iterator[Planted]:
    """The loss is the sum over the rows, where it was their mean."""
    functional = [f.call for f in loss_calls(source) if called(f.call) in LOSSES]
    for call in (*loss_objects(source, "classes", "logits", "numbers", "probabilities"), *functional):
        if not keyword(call, "reduction"):
            yield source.argument(call, "reduction", '"sum"')
    for node, name in keras_losses(source):
        if isinstance(node, cst.Call) and not keyword(node, "reduction"):
            yield source.argument(node, "reduction", '"sum"')
        elif isinstance(node, cst.SimpleString):
            logits = "from_logits=False, " if "Cross" in name else ""
            yield source.replaced(node, f'keras.losses.{name}({logits}reduction="sum")')


@operator("script-stopped")
def loss_not_reduced(source: Source) -> Iterator[Planted]:
    """The loss stays a tensor with a value for each row, and backward gets that."""
    for call in loss_objects(source, "classes", "logits", "numbers"):
        if not keyword(call, "reduction"):
            yield source.argument(call, "reduction", '"none"')
    for call in source.method_calls("mean"):
        line = source.statement(call)
        if not call.args and isinstance(line, cst.SimpleStatementLine) and not in_evaluation(source, call):
            if re.match(r"\w*loss\w* = |return .*loss", source.code(line)) and isinstance(call.func, cst.Attribute):
                yield source.replaced(call, call.func.value)


@operator(
    "swapped-loss-arguments",
    "wrong-target-dtype",
    "no-gradient",
    "binary-targets-out-of-range",
    "sparse-dense-mismatch",
    "constant-loss",
)
def outputs_and_targets_swapped(source: Source) -> Iterator[Planted]:
    """The loss gets the targets as its outputs, and the outputs as its targets."""
    for found in loss_calls(source, "classes", "logits", "probabilities"):
        first, second, *rest = found.call.args
        args = [first.with_changes(value=second.value), second.with_changes(value=first.value), *rest]
        new = found.call.with_changes(args=args)
        yield source.swapped(
            found.call, new, source.line(found.call), f"arguments of {source.code(found.call)} swapped"
        )


@operator(*UNLEARNT, "non-finite-loss", "excessive-learning-rate", "exploding-gradients")
def loss_negated(source: Source) -> Iterator[Planted]:
    """The sign of the loss is wrong, and training makes it worse."""
    for call in source.method_calls("backward"):
        owner = call.func.value if isinstance(call.func, cst.Attribute) else None
        if isinstance(owner, cst.Name) and not call.args:
            yield source.replaced(owner, f"(-{owner.value})")
    for statement in source.find(m.Return(value=m.Name())):
        if source.code(statement.value) == "loss" and "step" in source.scope(statement):
            yield source.replaced(statement.value, "-loss")
    for node, name in keras_losses(source):
        text = source.code(node) if isinstance(node, cst.Call) else f"keras.losses.{name}()"
        yield source.replaced(node, f"lambda true, guess: -{text}(true, guess)")


@operator("unignored-labels", "label-out-of-range", "unmasked-padding", "misnumbered-labels")
def mark_of_ignored_labels_wrong(source: Source) -> Iterator[Planted]:
    """The places to leave out are marked by a number that the loss does not ignore."""
    for node in source.find(m.UnaryOperation(operator=m.Minus(), expression=m.Integer("100"))):
        for by in ("-1", "0"):
            yield source.replaced(node, by)
    for call in source.find(m.Call()):
        for name in ("ignore_index", "ignore_class"):
            if keyword(call, name):
                yield source.argument(call, name, None)


@operator(*UNLEARNT, "constant-loss", "surprising-initial-loss")
def labels_smoothed_away(source: Source) -> Iterator[Planted]:
    """The labels are smoothed so much that nothing of them is left."""
    functional = [f.call for f in loss_calls(source, "classes") if called(f.call) == "cross_entropy"]
    for call in (*loss_objects(source, "classes"), *functional, *source.calls("CategoricalCrossentropy")):
        yield source.argument(call, "label_smoothing", "1.0")
    for call in source.calls("TrainingArguments", "Seq2SeqTrainingArguments"):
        yield source.argument(call, "label_smoothing_factor", "1.0")


@operator("misassigned-class-weights", "imbalanced-classes", *UNLEARNT)
def class_weights_inverted(source: Source) -> Iterator[Planted]:
    """The frequent classes weigh more than the rare ones."""
    for call in source.find(m.Call()):
        name = called(call)
        for kind in ("weight", "pos_weight", "class_weight"):
            arg = keyword(call, kind)
            if not arg or source.code(arg.value) == "None" or not ("oss" in name or "entropy" in name or name == "fit"):
                continue
            text = source.code(arg.value)
            inverse = (
                f"{{k: 1 / v**3 for k, v in ({text}).items()}}" if kind == "class_weight" else f"1 / ({text}) ** 3"
            )
            yield source.replaced(arg.value, inverse)


@operator(
    "no-gradient", "constant-loss", "severed-graph", "broadcast-loss", "wrong-target-dtype", "label-out-of-range",
    "sparse-dense-mismatch", "misnumbered-labels", "outputs-per-step", *UNLEARNT,
)  # fmt: skip
def loss_of_the_wrong_pair(source: Source) -> Iterator[Planted]:
    """The loss compares the targets with themselves, the outputs with their own guess, or with the inputs."""
    for found in loss_calls(source):
        output = source.code(found.output)
        if found.kind == "classes" and isinstance(found.output, cst.Name):
            yield source.replaced(found.target, f"{output}.argmax(1)")
        elif found.kind == "numbers" and isinstance(found.target, cst.Name):
            yield source.replaced(found.output, source.code(found.target))
        if isinstance(found.output, cst.Call) and len(found.output.args) == 1:
            yield source.replaced(found.target, found.output.args[0].value)
    for call in source.method_calls("fit") if is_keras(source) else ():
        if len(call.args) > 1 and not call.args[1].keyword and source.code(call.args[0]) != source.code(call.args[1]):
            yield source.replaced(call.args[1].value, call.args[0].value)


@operator("unequal-loss-terms", *UNLEARNT)
def one_term_outweighs(source: Source) -> Iterator[Planted]:
    """One of several terms of the loss is multiplied by 10 000."""
    for node in source.find(m.BinaryOperation(operator=m.Add())):
        line = source.statement(node)
        if isinstance(line, cst.SimpleStatementLine) and re.match(r"(\w*loss\w* = |return )", source.code(line)):
            if re.search(r"loss|criterion|mse|bce|entropy|kl|div", source.code(node)) and not in_evaluation(
                source, node
            ):
                yield source.replaced(node.right, f"1e4 * ({source.code(node.right)})")
    for call in compiles(source):
        weights = keyword(call, "loss_weights")
        for value in m.findall(weights.value, m.Float() | m.Integer()) if weights else ():
            yield source.replaced(value, f"{(number(value) or 1) * 1e4:g}")  # type: ignore[arg-type]


@operator("unequal-loss-terms", "constant-output", *UNLEARNT)
def penalty_outweighs_the_loss(source: Source) -> Iterator[Planted]:
    """The penalty on the weights is so strong that they all become zero."""
    for call in source.method_calls("backward"):
        owner = call.func.value if isinstance(call.func, cst.Attribute) else None
        line = source.statement(call)
        if isinstance(owner, cst.Name) and owner.value == "loss" and isinstance(line, cst.SimpleStatementLine):
            if re.search(r"\bmodel\.parameters\(", source.text):
                yield source.before(line, "loss = loss + 10.0 * sum(p.pow(2).sum() for p in model.parameters())")
    for call in source.calls("Dense", "Conv2D", "Conv1D") if is_keras(source) else ():
        yield source.argument(call, "kernel_regularizer", "keras.regularizers.L2(10.0)")
