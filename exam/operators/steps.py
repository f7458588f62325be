"""Faults of the step: what is cleared, propagated, updated, and in which order."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.operators.rates import OPTIMIZERS
from exam.source import Planted, Source, called, keyword


def _lines(source: Source, *methods: str) -> Iterator[tuple[cst.Call, cst.SimpleStatementLine]]:
    """Statements in loops or functions that are nothing but a call of one of these methods."""
    for call in source.method_calls(*methods):
        line = source.statement(call)
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and isinstance(line.body[0], cst.Expr):
            if line.body[0].value is call:
                yield call, line


def _updates(source: Source) -> Iterator[tuple[cst.Call, cst.SimpleStatementLine]]:
    for call, line in _lines(source, "step"):
        assert isinstance(call.func, cst.Attribute)
        owner = source.code(call.func.value).lower()
        if "sched" not in owner and ("opt" in owner or "scaler" in owner):
            yield call, line


@operator("uncleared-gradients")
def gradients_never_cleared(source: Source) -> Iterator[Planted]:
    """zero_grad is missing."""
    for _, line in _lines(source, "zero_grad"):
        yield source.removed(line)


@operator("wiped-accumulation", "unstepped-optimizer", "no-gradient")
def gradients_cleared_before_step(source: Source) -> Iterator[Planted]:
    """zero_grad stands between backward and step."""
    for call, line in _lines(source, "zero_grad"):
        for _, update in _updates(source):
            if source.parent(update) is source.parent(line):
                planted = source.before(update, source.code(call))
                yield planted


@operator("unstepped-optimizer")
def optimizer_never_steps(source: Source) -> Iterator[Planted]:
    """optimizer.step() is missing."""
    for _, line in _updates(source):
        yield source.removed(line)


@operator("unstepped-optimizer", "no-gradient")
def backward_missing(source: Source) -> Iterator[Planted]:
    """The loss is computed, and nobody calls backward."""
    for _, line in _lines(source, "backward"):
        yield source.removed(line)


@operator("unstepped-optimizer", "unscaled-accumulation")
def stepped_once_an_epoch(source: Source) -> Iterator[Planted]:
    """The optimizer steps after the loop over batches, where it stood inside."""
    for _, line in _updates(source):
        loop = source.inside(line, cst.For)
        block = source.parent(line)
        if loop is None or block is not loop.body or not isinstance(source.parent(loop), cst.IndentedBlock):
            continue
        if not any(isinstance(a, cst.For) for a in _ancestors(source, loop)):
            continue
        inner = loop.with_changes(body=block.with_changes(body=[s for s in block.body if s is not line] or [_pass()]))
        outer = source.parent(loop)
        body = list(outer.body)
        at = body.index(loop)
        new = outer.with_changes(body=[*body[:at], inner, line, *body[at + 1 :]])
        yield source.swapped(outer, new, source.line(line), "optimizer.step() after the loop over batches")


def _ancestors(source: Source, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    while not isinstance(node, cst.Module):
        node = source.parent(node)
        yield node


def _pass() -> cst.BaseStatement:
    return cst.parse_statement("pass")  # type: ignore[return-value]


@operator("severed-graph")
def loss_detached(source: Source) -> Iterator[Planted]:
    """The outputs are detached before the loss."""
    for call in source.find(m.Call()):
        name = called(call).lower()
        if ("criterion" in name or "loss" in name or name.endswith(("cross_entropy", "with_logits"))) and call.args:
            first = call.args[0]
            if isinstance(first.value, cst.Name) and source.in_loop(call):
                yield source.replaced(first.value, f"{first.value.value}.detach().requires_grad_()")


@operator("severed-graph")
def activations_left_the_graph(source: Source) -> Iterator[Planted]:
    """A hidden activation leaves the graph in the model's forward."""
    for function in source.functions("forward"):
        for line in function.body.body if isinstance(function.body, cst.IndentedBlock) else ():
            if m.matches(line, m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name())])])):
                name = line.body[0].targets[0].target.value
                yield source.after(line, f"{name} = {name}.detach()")


@operator("frozen-untrained-layers", "unregistered-parameters")
def model_frozen(source: Source) -> Iterator[Planted]:
    """All parameters of the model are frozen but for the last two tensors."""
    for variable in source.variables:
        if variable.kind == "model" and "model" in variable.name.lower():
            text = f"for parameter in list({variable.name}.parameters())[:-2]:\n    parameter.requires_grad = False"
            yield source.after(variable.statement, text)


@operator("unregistered-parameters", "frozen-untrained-layers")
def optimizer_has_one_layer(source: Source) -> Iterator[Planted]:
    """The optimizer has the parameters of the last layer only."""
    for call in source.calls(*OPTIMIZERS):
        if call.args and m.matches(call.args[0].value, m.Call(func=m.Attribute(attr=m.Name("parameters")))):
            yield source.replaced(call.args[0].value, f"list({source.code(call.args[0].value)})[-2:]")


@operator("unregistered-parameters", "unstepped-optimizer")
def optimizer_of_a_copy(source: Source) -> Iterator[Planted]:
    """The optimizer was built for another copy of the model."""
    for call in source.calls(*OPTIMIZERS):
        if call.args and m.matches(call.args[0].value, m.Call(func=m.Attribute(attr=m.Name("parameters")))):
            owner = source.code(call.args[0].value.func.value)
            yield source.replaced(call.args[0].value, f"__import__('copy').deepcopy({owner}).parameters()")


@operator("unscaled-accumulation", "excessive-learning-rate")
def accumulation_not_divided(source: Source) -> Iterator[Planted]:
    """The loss is not divided by the number of accumulated batches."""
    for node in source.find(m.BinaryOperation(operator=m.Divide())):
        left, right = source.code(node.left), source.code(node.right).lower()
        if "loss" in left.lower() and any(w in right for w in ("accum", "micro", "steps_per")):
            yield source.replaced(node, node.left)
    for statement in source.find(m.AugAssign(operator=m.DivideAssign())):
        if "accum" in source.code(statement.value).lower():
            yield source.removed(source.statement(statement))


@operator("wiped-accumulation")
def cleared_in_every_micro_batch(source: Source) -> Iterator[Planted]:
    """Gradients are accumulated over batches, and cleared in each of them."""
    for call, line in _lines(source, "zero_grad"):
        condition = source.inside(line, cst.If)
        if (
            condition is not None
            and source.in_loop(condition)
            and isinstance(source.parent(condition), cst.IndentedBlock)
        ):
            yield source.before(source.parent(condition).body[0], source.code(call))


@operator("negligible-learning-rate", "unstepped-optimizer")
def clipped_to_nothing(source: Source) -> Iterator[Planted]:
    """Gradients are clipped to a norm that stops the training."""
    for call in source.calls("clip_grad_norm_"):
        for arg in call.args[1:2]:
            yield source.replaced(arg.value, "1e-6")
    for _, line in _lines(source, "backward"):
        for variable in source.variables:
            if variable.kind == "model" and variable.name == "model" and source.scope(line) == variable.scope:
                text = "__import__('torch').nn.utils.clip_grad_norm_(model.parameters(), 1e-6)"
                yield source.after(line, text)
    for call in source.calls("TrainingArguments"):
        yield source.argument(call, "max_grad_norm", "1e-9")
    for call in source.calls(*OPTIMIZERS):
        if keyword(call, "clipnorm"):
            yield source.argument(call, "clipnorm", "1e-9")


@operator("repeated-backward")
def backward_twice(source: Source) -> Iterator[Planted]:
    """backward is called twice on one graph."""
    for call, line in _lines(source, "backward"):
        if source.in_loop(line):
            yield source.after(line, source.code(call))


@operator("wrong-mode", "inactive-training-mode")
def left_in_evaluation_mode(source: Source) -> Iterator[Planted]:
    """train() is never called again after an evaluation."""
    for call, line in _lines(source, "train"):
        if not call.args and source.calls("eval"):
            yield source.removed(line)


@operator("wrong-mode", harm="differs")
def evaluated_in_training_mode(source: Source) -> Iterator[Planted]:
    """eval() is missing before the evaluation."""
    for call, line in _lines(source, "eval"):
        if not call.args:
            yield source.removed(line)


@operator("retained-logits", "out-of-memory")
def losses_kept_with_their_graph(source: Source) -> Iterator[Planted]:
    """The running loss is summed as a tensor, and keeps every graph."""
    for statement in source.find(m.AugAssign(operator=m.AddAssign())):
        text = source.code(statement.value)
        if text.startswith("loss") and ".item()" in text:
            yield source.replaced(statement.value, text.replace(".item()", "", 1))
