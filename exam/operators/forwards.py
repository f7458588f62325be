"""Faults of the forward pass: what a model does with its layers and its inputs."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.parts import ACTIVATIONS, UNLEARNT, beside, built, forwards, in_evaluation, is_keras, stacks, torch_of
from exam.source import Planted, Source, called, keyword, number

_SHAPES = (
    "layer-size-mismatch", "wrong-number-of-axes", "channels-misplaced", "script-stopped", "outputs-per-step",
    "unflattened-scores", "broadcast-loss", "label-out-of-range", "sparse-dense-mismatch", "wrong-target-dtype",
)  # fmt: skip
_NORMS = (
    "BatchNorm1d",
    "BatchNorm2d",
    "LayerNorm",
    "GroupNorm",
    "BatchNormalization",
    "LayerNormalization",
    "Rescaling",
)
_CALL_OF_LAYER = m.Call(func=m.Attribute(value=m.Name("self"), attr=m.Name()))


@operator(*_SHAPES, "unregistered-parameters", "vanishing-gradients", *UNLEARNT)
def forward_skips_a_layer(source: Source) -> Iterator[Planted]:
    """forward leaves out one of the layers that the model has."""
    for owner, function in forwards(source):
        layers = built(source, owner)
        for call in m.findall(function, _CALL_OF_LAYER):
            call = cst.ensure_type(call, cst.Call)
            if called(call) in layers and len(call.args) == 1:
                yield source.replaced(call, call.args[0].value)
    for call in source.find(m.Call(func=m.Call())):
        if is_keras(source) and called(call.func) in ("Dense", "Conv2D", "Conv1D", "LSTM", "GRU"):
            if len(call.args) == 1 and isinstance(call.args[0].value, (cst.Name, cst.Call)):
                yield source.replaced(call, call.args[0].value)


@operator(*_SHAPES, "crossed-samples", "unlearnable-batch")
def layer_left_out(source: Source) -> Iterator[Planted]:
    """A layer is missing in a Sequential: one that flattens, pools or projects."""
    for stack in stacks(source):
        for item in stack.items:
            value = item.value
            if isinstance(value, cst.Call) and called(value) not in (
                *ACTIVATIONS,
                *_NORMS,
                "Dropout",
                "Input",
                "Dropout2d",
            ):
                if len(stack.items) > 1:
                    new = stack.with_items([i for i in stack.items if i is not item])
                    yield source.swapped(stack.call, new, source.line(item), f"without {source.code(value)}")
    for call in source.find(m.Call(func=m.Call())):
        if is_keras(source) and re.match(r"Flatten|Global|Max|Average", called(call.func)) and call.args:
            yield source.replaced(call, call.args[0].value)


@operator("unlearnable-batch", "vanishing-gradients", "surprising-initial-loss", "exploding-gradients")
def normalization_left_out(source: Source) -> Iterator[Planted]:
    """The normalization layers are missing."""
    changes = []
    for stack in stacks(source):
        changes += [(i, None) for i in stack.items if isinstance(i.value, cst.Call) and called(i.value) in _NORMS]
    for owner, _ in forwards(source):
        names = (c for c in built(source, owner).values() if called(c) in _NORMS and not is_keras(source))
        changes += [(c, beside(source, c, "Identity()")) for c in names]
    for call in source.find(m.Call(func=m.Call())):
        if called(call.func) in _NORMS and len(call.args) == 1:
            changes.append((call, lambda updated: updated.args[0].value))
    if changes:
        yield source.many(changes, "without normalization layers")


@operator("crossed-samples", *_SHAPES, *UNLEARNT)
def axis_of_the_batch(source: Source) -> Iterator[Planted]:
    """A softmax, a mean, a normalization or a flattening runs over the rows of the batch."""
    names = ("softmax", "log_softmax", "normalize", "mean", "amax", "Softmax", "LogSoftmax", "cumsum")
    for call in source.calls(*names, "concatenate", "cat", "norm", "flatten", "logsumexp"):
        if in_evaluation(source, call):
            continue
        for arg in call.args:
            named = arg.keyword.value in ("dim", "axis", "start_dim") if arg.keyword else arg is call.args[-1]
            if named and number(arg.value) not in (None, 0.0) and abs(number(arg.value) or 0) < 4:
                yield source.replaced(arg.value, "0")
    for call in source.calls("BatchNormalization", "LayerNormalization"):
        if not keyword(call, "axis"):
            yield source.argument(call, "axis", "1" if called(call)[0] == "B" else "0")


@operator("crossed-samples", "fixed-batch-size", *_SHAPES)
def batch_first_forgotten(source: Source) -> Iterator[Planted]:
    """A recurrent or attention layer takes the batch for the steps."""
    for call in source.calls("LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoderLayer"):
        if keyword(call, "batch_first"):
            yield source.argument(call, "batch_first", None)


@operator(*_SHAPES, "crossed-samples")
def recurrent_outputs_confused(source: Source) -> Iterator[Planted]:
    """The outputs of all steps are taken for the last one, or the reverse."""
    for call in source.calls("LSTM", "GRU", "SimpleRNN", "Bidirectional") if is_keras(source) else ():
        if called(call) != "Bidirectional":
            yield source.argument(call, "return_sequences", None if keyword(call, "return_sequences") else "True")
    for node in source.find(m.Subscript()):
        text = source.code(node)
        if text.endswith("[:, -1]"):
            yield source.replaced(node, node.value)
            yield source.replaced(node, text.replace("[:, -1]", "[:, 0]"))
            yield source.replaced(node, text.replace("[:, -1]", "[-1]"))


@operator("vanishing-gradients", "unlearnable-batch")
def residual_left_out(source: Source) -> Iterator[Planted]:
    """The input of a residual block is not added to its output."""
    for _, function in forwards(source):
        for node in m.findall(function, m.BinaryOperation(operator=m.Add(), left=m.Name())):
            node = cst.ensure_type(node, cst.BinaryOperation)
            if m.findall(node.right, m.Call()) and re.search(rf"\b{source.code(node.left)}\b", source.code(node.right)):
                yield source.replaced(node, node.right)
    for call in source.find(m.Call(func=m.Call(func=m.Attribute(attr=m.Name("Add"))))):
        if isinstance(call.args[0].value, cst.List):
            yield source.replaced(call, call.args[0].value.elements[-1].value)
    for node in source.find(m.BinaryOperation(operator=m.Add(), left=m.Call(), right=m.Name())):
        if source.code(node.left).endswith(f"({source.code(node.right)})") and not in_evaluation(source, node):
            yield source.replaced(node, node.left)


@operator("rebuilt-layers", "unregistered-parameters", "unstepped-optimizer")
def layer_built_in_forward(source: Source) -> Iterator[Planted]:
    """A layer is built anew in each forward pass."""
    for owner, function in forwards(source):
        layers = built(source, owner)
        arguments = {p.name.value for f in m.findall(owner, m.FunctionDef()) for p in f.params.params}  # type: ignore[attr-defined]
        for call in m.findall(function, _CALL_OF_LAYER):
            call = cst.ensure_type(call, cst.Call)
            layer = layers.get(called(call))
            if layer is None or called(layer) not in (
                "Linear",
                "Dense",
                "Conv2d",
                "Conv2D",
                "Embedding",
                "LSTM",
                "GRU",
            ):
                continue
            if not {n.value for n in m.findall(layer, m.Name())} & arguments:  # type: ignore[attr-defined]
                yield source.replaced(call.func, layer)


@operator("severed-graph", "no-gradient", "frozen-model")
def forward_without_gradients(source: Source) -> Iterator[Planted]:
    """The model's forward, or a part of it, runs under no_grad."""
    for owner, function in forwards(source):
        if is_keras(source) or not function.body.body:
            continue
        with_no_grad = cst.Decorator(cst.parse_expression(f"{torch_of(source)}.no_grad()"))
        new = function.with_changes(decorators=[*function.decorators, with_no_grad])
        yield source.swapped(function, new, source.line(function), f"no_grad on {owner.name.value}.forward")
        for line in function.body.body:
            if m.matches(line, m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name())])])):
                if re.search(r"self\.\w+\(", source.code(line)):
                    text = f"with {torch_of(source)}.no_grad():\n    {source.code(line)}"
                    block = cst.parse_module(text).body[0]
                    yield source.swapped(line, block, source.line(line), f"no_grad: {source.code(line)}")
    for call in source.method_calls("stop_gradient") if is_keras(source) else ():
        yield source.replaced(call, call.args[0].value)
    for function in source.functions("call") if is_keras(source) else ():
        for call in m.findall(function, _CALL_OF_LAYER):
            call = cst.ensure_type(call, cst.Call)
            if call.args and not source.code(call).startswith("self.add_loss"):
                yield source.replaced(call, f"keras.ops.stop_gradient({source.code(call)})")


@operator("constant-output", "ignored-input", *UNLEARNT)
def forward_ignores_its_input(source: Source) -> Iterator[Planted]:
    """What forward goes on with is a tensor of zeros, left from a test."""
    for _, function in forwards(source):
        parameters = [p.name.value for p in function.params.params if p.name.value != "self"]
        first = function.body.body[0]
        if parameters and isinstance(first, cst.SimpleStatementLine):
            zeros = "keras.ops" if is_keras(source) else torch_of(source)
            yield source.before(first, f"{parameters[0]} = {zeros}.zeros_like({parameters[0]})")
    for call in source.find(m.Call(func=m.Call())):
        if (
            is_keras(source)
            and called(call.func) in ("Dense", "Conv2D", "Conv1D")
            and isinstance(call.args[0].value, cst.Name)
        ):
            yield source.replaced(call.args[0].value, f"keras.ops.zeros_like({source.code(call.args[0].value)})")


@operator("future-leak", "mismatched-mask", "unmasked-padding", harm="differs")
def mask_left_out(source: Source) -> Iterator[Planted]:
    """The model attends to what it must not see: the mask is not passed."""
    for call in source.find(m.Call()):
        for name in (
            "mask",
            "attn_mask",
            "attention_mask",
            "src_key_padding_mask",
            "is_causal",
            "use_causal_mask",
            "mask_zero",
        ):
            if keyword(call, name):
                yield source.argument(call, name, None)
    for call in source.method_calls("masked_fill"):
        if isinstance(call.func, cst.Attribute):
            yield source.replaced(call, call.func.value)


@operator("fixed-batch-size", "layer-size-mismatch", "crossed-samples", "script-stopped", "broadcast-loss")
def batch_size_written_in(source: Source) -> Iterator[Planted]:
    """A view in forward has a batch size written into it, and the last batch is smaller."""
    size = next(
        (a.value for c in source.calls("DataLoader") for a in c.args if a.keyword and a.keyword.value == "batch_size"),
        None,
    )
    for _, function in forwards(source):
        for call in m.findall(function, m.Call(func=m.Attribute(attr=m.Name("view") | m.Name("reshape")))):
            first = cst.ensure_type(call, cst.Call).args[0].value
            if size is not None and number(size) and not isinstance(first, cst.UnaryOperation):
                yield source.replaced(first, source.code(size))
        for call in m.findall(function, m.Call(func=m.Attribute(attr=m.Name("flatten")), args=[m.Arg(m.Integer("1"))])):
            call = cst.ensure_type(call, cst.Call)
            if size is not None and number(size) and isinstance(call.func, cst.Attribute):
                yield source.replaced(call, f"{source.code(call.func.value)}.reshape({source.code(size)}, -1)")


@operator("in-place-change", "severed-graph", "crossed-samples", "non-finite-loss")
def activation_changed_in_place(source: Source) -> Iterator[Planted]:
    """An activation that backward needs is changed in place."""
    for _, function in forwards(source):
        for line in function.body.body if not is_keras(source) else ():
            if m.matches(line, m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name())])])):
                name = line.body[0].targets[0].target.value
                if re.search(r"tanh|sigmoid|softmax|exp|relu|self\.\w+\(", source.code(line)):
                    yield source.after(line, f"{name} *= 2")


@operator("inactive-training-mode", "wrong-mode")
def training_flag_fixed(source: Source) -> Iterator[Planted]:
    """Dropout is always on, or the model always runs as in evaluation."""
    for call in source.calls("dropout"):
        for arg in call.args:
            if arg.keyword and arg.keyword.value == "training":
                yield source.argument(call, "training", None)
    for call in source.find(m.Call()):
        if keyword(call, "training") and called(call) != "dropout":
            yield source.argument(call, "training", "False")
    for name in ("BatchNormalization", "Dropout"):
        for call in source.find(m.Call(func=m.Call(func=m.Attribute(attr=m.Name(name))))):
            yield source.argument(call, "training", "False" if name[0] == "B" else "True")
