"""Faults between the outputs and the targets: shapes, types, rows, and what becomes of the loss's value."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.parts import UNLEARNT, compiles, in_evaluation, is_keras, loss_calls
from exam.source import Planted, Source, keyword

_SHAPES = (
    "broadcast-loss", "column-labels", "broadcast-metric", "unflattened-scores", "outputs-per-step", "wrong-target-dtype",
    "wrong-number-of-axes", "layer-size-mismatch", "script-stopped", "channels-misplaced", "label-out-of-range",
    "wrong-head",
)  # fmt: skip


@operator(*_SHAPES)
def reshaping_left_out(source: Source) -> Iterator[Planted]:
    """A squeeze, unsqueeze, view, reshape or flatten is missing."""
    for call in source.method_calls("squeeze", "unsqueeze", "view", "reshape", "flatten", "ravel"):
        assert isinstance(call.func, cst.Attribute)
        owner = source.code(call.func.value)
        if owner in ("torch", "np", "ops", "keras.ops", "tf"):
            yield source.replaced(call, call.args[0].value)
        elif not in_evaluation(source, call):
            yield source.replaced(call, call.func.value)
    for node in source.find(m.Subscript()):
        if re.search(r"\[(:, None|\.\.\., None|:, np\.newaxis)\]$", source.code(node)):
            yield source.replaced(node, node.value)


@operator("broadcast-loss", "column-labels", "sparse-dense-mismatch", "wrong-target-dtype")
def targets_in_a_column(source: Source) -> Iterator[Planted]:
    """The targets come as a column, (N, 1), where the outputs are (N,) or classes."""
    for found in loss_calls(source):
        if isinstance(found.target, cst.Name) and not re.search(r"view|reshape|unsqueeze", source.code(found.output)):
            yield source.replaced(found.target, f"{found.target.value}.unsqueeze(-1)")


@operator("broadcast-loss", "column-labels", "sparse-dense-mismatch")
def targets_in_a_row(source: Source) -> Iterator[Planted]:
    """The targets are flattened to (N,), where the outputs are (N, 1)."""
    for found in loss_calls(source, "numbers", "logits", "probabilities"):
        if isinstance(found.target, cst.Name):
            yield source.replaced(found.target, f"{found.target.value}.reshape(-1)")


@operator("broadcast-loss")
def outputs_keep_their_column(source: Source) -> Iterator[Planted]:
    """A loss written by hand takes outputs (N, 1) and targets (N,), and pairs each row with every row."""
    for found in loss_calls(source, "numbers"):
        if isinstance(found.target, cst.Name):
            output, target = source.code(found.output), found.target.value
            yield source.replaced(found.call, f"(({output}).reshape(-1, 1) - {target}.reshape(-1)).pow(2).mean()")


@operator("wrong-target-dtype", "sparse-dense-mismatch", "destroyed-labels", "binary-targets-out-of-range")
def target_type_wrong(source: Source) -> Iterator[Planted]:
    """The targets are cast to a type that the loss rejects, or that cuts off their fractions."""
    for found in loss_calls(source):
        casts = {"classes": ("float()", "int()"), "numbers": ("long()", "double()")}.get(found.kind, ("long()",))
        if isinstance(found.target, cst.Name):
            for cast in casts:
                yield source.replaced(found.target, f"{found.target.value}.{cast}")
    for call in source.method_calls("fit") if is_keras(source) else ():
        target = call.args[1].value if len(call.args) > 1 and not call.args[1].keyword else None
        if isinstance(target, (cst.Name, cst.Subscript)):
            yield source.replaced(target, f'({source.code(target)}).astype("int32")')
            yield source.replaced(target, f'({source.code(target)}).astype("str")')


@operator("wrong-target-dtype", "sparse-dense-mismatch")
def cast_left_out(source: Source) -> Iterator[Planted]:
    """A cast to float or long is missing, and double or bytes reach the model or the loss."""
    for call in source.method_calls("float", "long", "double"):
        if (
            not call.args
            and isinstance(call.func, cst.Attribute)
            and "==" not in source.code(call)
            and not in_evaluation(source, call)
        ):
            yield source.replaced(call, call.func.value)
    for call in source.calls("tensor", "as_tensor"):
        if keyword(call, "dtype"):
            yield source.argument(call, "dtype", None)
    for call in source.method_calls("astype"):
        if isinstance(call.func, cst.Attribute) and "float" in source.code(call):
            yield source.replaced(call, call.func.value)


@operator(*UNLEARNT)
def loss_of_the_first_row(source: Source) -> Iterator[Planted]:
    """Only the first row of each batch counts in the loss."""
    for found in loss_calls(source):
        if isinstance(found.target, cst.Name) and not re.search(r"view|reshape", source.code(found.output)):
            yield source.many(
                [(found.output, f"({source.code(found.output)})[:1]"), (found.target, f"{found.target.value}[:1]")],
                f"the first row only in {source.code(found.call)}",
            )


@operator("misaligned-labels", *UNLEARNT)
def loss_of_other_rows(source: Source) -> Iterator[Planted]:
    """The targets are in another order than the outputs when the loss is taken."""
    for found in loss_calls(source):
        if isinstance(found.target, cst.Name):
            yield source.replaced(found.target, f"{found.target.value}.flip(0)")
    for call in source.method_calls("fit") if is_keras(source) else ():
        target = call.args[1].value if len(call.args) > 1 and not call.args[1].keyword else None
        if isinstance(target, (cst.Name, cst.Subscript)):
            yield source.replaced(target, f"{source.code(target)}[::-1]")


@operator("misnumbered-labels", "label-out-of-range")
def classes_counted_from_one(source: Source) -> Iterator[Planted]:
    """The loss gets class numbers that begin at 1."""
    for found in loss_calls(source, "classes"):
        if isinstance(found.target, cst.Name):
            yield source.replaced(found.target, f"{found.target.value} + 1")
    for call in source.method_calls("fit") if "sparse_categorical" in source.text.lower() else ():
        target = call.args[1].value if len(call.args) > 1 and not call.args[1].keyword else None
        if isinstance(target, (cst.Name, cst.Subscript)):
            yield source.replaced(target, f"{source.code(target)} + 1")


@operator("no-gradient", "severed-graph", "wrong-target-dtype", "broadcast-loss", "constant-loss")
def guesses_in_the_loss(source: Source) -> Iterator[Planted]:
    """The loss gets the guessed classes, through which no gradient flows, where it needs the scores."""
    for found in loss_calls(source, "classes"):
        yield source.replaced(found.output, f"({source.code(found.output)}).argmax(1).float()")
    for found in loss_calls(source, "logits"):
        yield source.replaced(found.output, f"(({source.code(found.output)}) > 0).float()")


@operator("no-gradient", "severed-graph", "missing-loss")
def loss_taken_for_a_number(source: Source) -> Iterator[Planted]:
    """The loss is turned into a plain number, or a new tensor of it, before backward."""
    for call in source.method_calls("backward"):
        owner = call.func.value if isinstance(call.func, cst.Attribute) else None
        line = source.statement(call)
        if isinstance(owner, cst.Name) and isinstance(line, cst.SimpleStatementLine) and not call.args:
            new = f"{owner.value} = {owner.value}.new_tensor({owner.value}.item(), requires_grad=True)"
            yield source.before(line, new)
            yield source.before(line, f"{owner.value} = {owner.value}.item()")
            yield source.before(line, f"{owner.value} = {owner.value}.detach()")


@operator("script-stopped")
def loss_function_overwritten(source: Source) -> Iterator[Planted]:
    """The loss's value takes the name of the loss function."""
    for found in loss_calls(source):
        line = source.statement(found.call)
        if isinstance(found.call.func, cst.Name) and isinstance(line, cst.SimpleStatementLine) and source.in_loop(line):
            if m.matches(line.body[0], m.Assign(targets=[m.AssignTarget(target=m.Name())], value=m.Call())):
                assign = cst.ensure_type(line.body[0], cst.Assign)
                if assign.value is found.call:
                    loss = source.code(assign.targets[0].target)
                    new = cst.parse_statement(f"{loss} = {found.call.func.value} = {source.code(found.call)}")
                    change = f"{found.call.func.value} = {source.code(found.call)}"
                    yield source.swapped(
                        line, new.with_changes(leading_lines=line.leading_lines), source.line(line), change
                    )


@operator("missing-loss", "no-gradient")
def compiled_without_a_loss(source: Source) -> Iterator[Planted]:
    """compile gets no loss."""
    for call in compiles(source):
        if keyword(call, "loss"):
            yield source.argument(call, "loss", None)


@operator("missing-targets", "labels-inside-inputs", "missing-labels", "missing-evaluation-labels")
def targets_not_passed(source: Source) -> Iterator[Planted]:
    """The training gets the inputs without the targets."""
    for call in source.method_calls("fit") if is_keras(source) else ():
        if len(call.args) > 1 and not call.args[1].keyword:
            new = call.with_changes(args=[call.args[0], *call.args[2:]])
            yield source.swapped(call, new, source.line(call), f"fit without {source.code(call.args[1].value)}")
    for call in source.calls("rename_column", "DataLoader", "TensorDataset"):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "rename_column":
            yield source.replaced(call, call.func.value)
        elif (
            len(call.args) == 2 and not any(a.keyword for a in call.args) and "TensorDataset" in source.code(call.func)
        ):
            new = call.with_changes(args=[call.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)])
            yield source.swapped(call, new, source.line(call), f"without {source.code(call.args[1].value)}")


@operator("negligible-learning-rate", *UNLEARNT)
def loss_divided_by_the_rows(source: Source) -> Iterator[Planted]:
    """The mean loss is divided by the number of rows once more, and by the batches too."""
    for call in source.method_calls("backward"):
        owner = call.func.value if isinstance(call.func, cst.Attribute) else None
        if isinstance(owner, cst.Name) and not call.args:
            yield source.replaced(owner, f"({owner.value} / 1e6)")
