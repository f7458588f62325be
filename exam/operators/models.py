"""Faults of the model as it is built: layers, sizes, activations, initial weights."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.parts import (
    ACTIVATIONS,
    UNLEARNT,
    activation_arguments,
    activation_calls,
    activation_layers,
    beside,
    built,
    forwards,
    is_keras,
    last_layers,
    models,
    stacks,
    torch_of,
)
from exam.source import Planted, Source, called, keyword, number

_SIZES = (
    "layer-size-mismatch", "label-out-of-range", "wrong-head", "sparse-dense-mismatch", "broadcast-loss",
    "script-stopped", "wrong-number-of-axes",
)  # fmt: skip
_NETS = ("Dense", "Conv1D", "Conv2D", "Linear", "Conv1d", "Conv2d")


def _first(updated: Any) -> Any:
    """What F.relu(x) or x.relu() is applied to."""
    return updated.args[0].value if updated.args else updated.func.value


@operator("linear-stack", *UNLEARNT)
def activations_missing(source: Source) -> Iterator[Planted]:
    """No activation stands between the layers, and the model is linear."""
    changes: list[tuple[cst.CSTNode, Any]] = [(a, None) for a in activation_arguments(source)]
    inside = {id(i.value): i for s in stacks(source) if len(s.items) > 1 for i in s.items}
    for call in activation_layers(source):
        changes.append((inside[id(call)], None) if id(call) in inside else (call, _identity(source, call)))
    changes += [(call, _first) for call, _ in activation_calls(source)]
    if changes:
        yield source.many(changes, "without activations")


def _identity(source: Source, call: cst.Call) -> str:
    return beside(source, call, "Activation('linear')" if is_keras(source) else "Identity()")


def _all_activations(source: Source, layer: str, function: str, keras: str) -> Iterator[Planted]:
    changes: list[tuple[cst.CSTNode, Any]] = [
        (a, a.with_changes(value=cst.SimpleString(f'"{keras}"'))) for a in activation_arguments(source)
    ]
    for call in activation_layers(source):
        changes.append((call, beside(source, call, f"Activation('{keras}')" if is_keras(source) else layer)))
    for call, x in activation_calls(source):
        module = "keras.ops" if is_keras(source) else torch_of(source)
        changes.append((call, f"{module}.{function.format(source.code(x))}"))
    if changes:
        yield source.many(changes, f"{keras} in place of all activations")


@operator("vanishing-gradients", "saturated-units", *UNLEARNT)
def sigmoid_in_hidden_layers(source: Source) -> Iterator[Planted]:
    """All hidden activations are sigmoids."""
    yield from _all_activations(source, "Sigmoid()", "sigmoid({})", "sigmoid")


@operator("vanishing-gradients", "saturated-units", *UNLEARNT)
def softmax_in_hidden_layers(source: Source) -> Iterator[Planted]:
    """All hidden activations are softmaxes."""
    yield from _all_activations(source, "Softmax(dim=-1)", "softmax({}, -1)", "softmax")


@operator("rectified-logits", "bounded-regression-output", "dead-units", "saturated-units")
def output_layer_rectified(source: Source) -> Iterator[Planted]:
    """The last layer has a ReLU."""
    yield from _on_outputs(source, "ReLU()", "relu")


@operator("bounded-regression-output", "double-activation", "saturated-units", "wrong-logits-flag")
def output_layer_bounded(source: Source) -> Iterator[Planted]:
    """The last layer of a model of numbers has a sigmoid or a tanh."""
    if re.search(r"mse|MSE|L1Loss|Huber|l1_loss|mean_squared|\"mae\"", source.text):
        yield from _on_outputs(source, "Tanh()", "tanh")
        yield from _on_outputs(source, "Sigmoid()", "sigmoid")


def _on_outputs(source: Source, layer: str, name: str) -> Iterator[Planted]:
    for call in last_layers(source):
        activation = keyword(call, "activation")
        if called(call) == "Dense" and (activation is None or "softmax" in source.code(activation)):
            yield source.argument(call, "activation", f'"{name}"')
        elif called(call) == "Linear":
            item = source.parent(call)
            stack = next((s for s in stacks(source) if any(i is item for i in s.items)), None)
            if stack:
                new = stack.with_items([*stack.items, stack.item(beside(source, call, layer))])
                yield source.swapped(stack.call, new, source.line(call), f"{layer} behind {source.code(call)}")
            else:
                text = f"{beside(source, call, 'Sequential')}({source.code(call)}, {beside(source, call, layer)})"
                yield source.replaced(call, text)


@operator("dead-units", "constant-output", "vanishing-gradients", *UNLEARNT)
def rectifiers_dead(source: Source) -> Iterator[Planted]:
    """The biases begin so far below zero that no rectifier lets anything through."""
    torch = torch_of(source)
    text = (
        'for name, p in {0}.named_parameters():\n    if name.endswith("bias"):\n        {1}.nn.init.constant_(p, -30.0)'
    )
    for name, line in models(source) if not is_keras(source) else ():
        yield source.after(line, text.format(name, torch))
    for arg in activation_arguments(source):
        if source.code(arg.value).strip("'\"") == "relu":
            yield source.argument(source.parent(arg), "bias_initializer", "keras.initializers.Constant(-30.0)")  # type: ignore[arg-type]


_ONE_UNIT = (
    *_SIZES,
    "one-unit-softmax",
    "class-loss-of-one-score",
    "argmax-of-one-column",
    "constant-loss",
    "broadcast-metric",
)


@operator(*_ONE_UNIT)
def one_output_for_several_classes(source: Source) -> Iterator[Planted]:
    """The last layer has a single unit."""
    yield from _outputs_resized(source, "1", at_least=2)


@operator(*_SIZES, "missing-classes")
def one_output_too_few(source: Source) -> Iterator[Planted]:
    """The last layer has a unit less than there are classes or targets."""
    yield from _outputs_resized(source, None, at_least=3)


@operator(*_SIZES, "unlearnable-batch", "surprising-initial-loss")
def far_too_many_outputs(source: Source) -> Iterator[Planted]:
    """The last layer has a thousand units too many."""
    yield from _outputs_resized(source, "1000", at_least=1)


def _outputs_resized(source: Source, units: str | None, at_least: int) -> Iterator[Planted]:
    for call in last_layers(source):
        arg = keyword(call, "out_features") or keyword(call, "units") or _nth(call, 0 if called(call) == "Dense" else 1)
        size = number(arg.value) if arg else None
        if arg and (size is None or size >= at_least):
            yield source.replaced(
                arg.value, units or (f"{source.code(arg.value)} - 1" if size is None else f"{size - 1:g}")
            )
    for call in source.find(m.Call()):
        labels = keyword(call, "num_labels")
        if labels and (units or (number(labels.value) or 0) >= at_least):
            yield source.replaced(labels.value, units or f"{source.code(labels.value)} - 1")


def _nth(call: cst.Call, index: int) -> cst.Arg | None:
    return (
        call.args[index]
        if len(call.args) > index and not call.args[index].keyword and not call.args[index].star
        else None
    )


@operator(*_SIZES, "channels-misplaced", "crashing-metrics")
def layer_of_the_wrong_size(source: Source) -> Iterator[Planted]:
    """A layer was built for one feature or channel more than it gets."""
    for call in source.calls(
        "Linear", "Conv1d", "Conv2d", "LSTM", "GRU", "LayerNorm", "BatchNorm1d", "BatchNorm2d", "LSTMCell"
    ):
        size = _nth(call, 0)
        if size and not isinstance(size.value, (cst.Call, cst.Tuple)) and isinstance(call.func, cst.Attribute):
            yield source.replaced(size.value, f"{source.code(size.value)} + 1")
    for call in source.calls("Input"):
        shape = _nth(call, 0) or keyword(call, "shape")
        if is_keras(source) and shape and isinstance(shape.value, cst.Tuple) and shape.value.elements:
            last = shape.value.elements[-1].value
            yield source.replaced(last, f"{source.code(last)} + 1")


@operator("extreme-dropout", *UNLEARNT)
def dropout_of_nearly_everything(source: Source) -> Iterator[Planted]:
    """Dropout leaves one value in a hundred: the share to keep was passed as the share to drop."""
    for call in source.calls("Dropout", "Dropout2d", "SpatialDropout1D"):
        rate = _nth(call, 0) or keyword(call, "p") or keyword(call, "rate")
        if rate:
            yield source.replaced(rate.value, "0.99")
    for stack in stacks(source):
        for i, item in enumerate(stack.items):
            value = item.value
            if isinstance(value, cst.Call) and (called(value) in ACTIVATIONS or keyword(value, "activation")):
                if i + 1 < len(stack.items):
                    new = stack.item(beside(source, value, "Dropout(0.99)"))
                    swapped = stack.with_items([*stack.items[: i + 1], new, *stack.items[i + 1 :]])
                    yield source.swapped(stack.call, swapped, source.line(item), "Dropout(0.99) added")


def _initialised(source: Source, torch: str, keras: str) -> Iterator[Planted]:
    for name, line in models(source) if not is_keras(source) else ():
        text = f"for p in {name}.parameters():\n    {torch.format(torch_of(source))}"
        yield source.after(line, text)
    layers = [c for c in source.calls(*_NETS) if is_keras(source) and not keyword(c, "kernel_initializer")]
    if layers:
        arg = cst.Arg(cst.parse_expression(keras), keyword=cst.Name("kernel_initializer"))
        changes = [(c, lambda updated: updated.with_changes(args=[*updated.args, arg])) for c in layers]
        yield source.many(changes, f"kernel_initializer={keras} in all layers")


@operator("identical-units", "constant-output", "vanishing-gradients", "dead-units", "no-gradient", *UNLEARNT)
def weights_begin_at_zero(source: Source) -> Iterator[Planted]:
    """All weights begin at zero."""
    yield from _initialised(source, "{}.nn.init.zeros_(p)", '"zeros"')


@operator(
    "identical-units",
    "oversized-initialisation",
    "constant-output",
    "surprising-initial-loss",
    "saturated-units",
    *UNLEARNT,
)
def weights_begin_equal(source: Source) -> Iterator[Planted]:
    """All weights begin at the same value."""
    yield from _initialised(source, "{}.nn.init.constant_(p, 0.05)", "keras.initializers.Constant(0.05)")
    yield from _initialised(source, "{}.nn.init.ones_(p)", '"ones"')


@operator(
    "oversized-initialisation", "saturated-units", "exploding-gradients", "surprising-initial-loss", "non-finite-loss",
    "non-finite-activation", "excessive-learning-rate", "dead-units", "vanishing-gradients",
)  # fmt: skip
def weights_begin_huge(source: Source) -> Iterator[Planted]:
    """The initial weights are a hundred times too large."""
    yield from _initialised(source, "p.data.normal_(0, 10.0)", "keras.initializers.RandomNormal(stddev=10.0)")


@operator("undersized-initialisation", "vanishing-gradients", "constant-output", "identical-units", *UNLEARNT)
def weights_begin_tiny(source: Source) -> Iterator[Planted]:
    """The initial weights are so small that no signal passes through the layers."""
    yield from _initialised(source, "p.data.mul_(1e-4)", "keras.initializers.RandomNormal(stddev=1e-7)")


@operator("unregistered-parameters", "mixed-devices")
def layers_in_a_plain_list(source: Source) -> Iterator[Planted]:
    """Layers are kept in a plain list, where the model does not see their weights."""
    for call in source.calls("ModuleList"):
        if call.args:
            yield source.replaced(call, f"list({source.code(call.args[0].value)})")
    for owner, _ in forwards(source):
        for name, call in built(source, owner).items() if not is_keras(source) else ():
            used = m.findall(owner, m.Call(func=m.Attribute(value=m.Name("self"), attr=m.Name(name))))
            if called(call) in (*_NETS, "Sequential", "LSTM", "GRU", "Embedding") and used:
                first = [(u.func, f"{source.code(u.func)}[0]") for u in used]  # type: ignore[attr-defined]
                yield source.many([(call, f"[{source.code(call)}]"), *first], f"self.{name} = [{called(call)}(...)]")


@operator("tokens-beyond-vocabulary", "index-beyond-embedding", "foreign-tokenizer")
def embedding_too_small(source: Source) -> Iterator[Planted]:
    """The embedding has half as many rows as there are tokens."""
    for call in source.calls("Embedding"):
        size = _nth(call, 0) or keyword(call, "num_embeddings") or keyword(call, "input_dim")
        if size:
            yield source.replaced(size.value, f"({source.code(size.value)}) // 2")
    for call in source.find(m.Call()):
        for name in ("vocab_size", "max_position_embeddings", "n_positions"):
            arg = keyword(call, name)
            if arg:
                yield source.replaced(arg.value, f"({source.code(arg.value)}) // 4")


@operator("non-finite-activation", "non-finite-loss", "run-diverged", "non-finite-gradients")
def weight_is_not_a_number(source: Source) -> Iterator[Planted]:
    """One weight of the model is NaN, as after loading a broken checkpoint."""
    for name, line in models(source):
        if not is_keras(source):
            yield source.after(line, f'next({name}.parameters()).data.view(-1)[0] = float("nan")')
    for call in source.method_calls("compile") if is_keras(source) else ():
        statement = source.statement(call)
        name = source.code(call.func.value) if isinstance(call.func, cst.Attribute) else ""
        if isinstance(statement, cst.SimpleStatementLine) and name.isidentifier():
            text = f'weights = {name}.get_weights()\nweights[0].flat[0] = float("nan")\n{name}.set_weights(weights)'
            yield source.after(statement, text)


@operator("script-stopped", "non-finite-loss", "non-finite-activation", "non-finite-gradients")
def model_in_another_precision(source: Source) -> Iterator[Planted]:
    """The model has been converted to another floating type than its inputs."""
    for name, line in models(source):
        for cast in ("double", "half") if not is_keras(source) else ():
            yield source.after(line, f"{name} = {name}.{cast}()")
    for call in source.calls("set_random_seed") if is_keras(source) else ():
        line = source.statement(call)
        if "set_global_policy" not in source.text:
            yield source.after(line, 'keras.config.set_floatx("float16")')


@operator("frozen-untrained-layers", "frozen-model", "unregistered-parameters", "unstepped-optimizer", "no-gradient")
def layers_frozen(source: Source) -> Iterator[Planted]:
    """All layers but the last, or all of them, are frozen before they were ever trained."""
    for name, line in models(source):
        if is_keras(source):
            yield source.after(line, f"for layer in {name}.layers[:-1]:\n    layer.trainable = False")
            yield source.after(line, f"{name}.trainable = False")
        else:
            yield source.after(line, f"{name}.requires_grad_(False)")
            yield source.after(line, f"for child in list({name}.children())[:-1]:\n    child.requires_grad_(False)")


@operator("ineffective-freeze")
def freeze_misspelt(source: Source) -> Iterator[Planted]:
    """The assignment that should freeze layers names an attribute that nothing reads."""
    for node in source.find(m.Attribute(attr=m.Name("requires_grad") | m.Name("trainable"))):
        parent = source.parent(node)
        if isinstance(parent, cst.AssignTarget) and source.code(source.statement(node)).endswith("False"):
            yield source.replaced(
                node, node.with_changes(attr=cst.Name("require_grad" if node.attr.value[0] == "r" else "trainble"))
            )


@operator("frozen-untrained-layers", *UNLEARNT)
def pretrained_weights_lost(source: Source) -> Iterator[Planted]:
    """The model keeps the shape of the pretrained one, but its weights are random."""
    for assign in source.find(m.Assign(targets=[m.AssignTarget(target=m.Name())], value=m.Call())):
        if called(assign.value) == "from_pretrained" and "okenizer" not in source.code(assign.value):
            name, line = assign.targets[0].target.value, source.statement(assign)
            yield source.after(line, f"{name} = type({name})({name}.config)")
    for call in source.method_calls("load_state_dict"):
        line = source.statement(call)
        if "optim" not in source.code(call) and isinstance(line, cst.SimpleStatementLine) and not source.in_loop(call):
            yield source.removed(line)


@operator("identical-units", "dead-units", *UNLEARNT)
def bottleneck_of_one_unit(source: Source) -> Iterator[Planted]:
    """A hidden layer has a single unit."""
    for stack in stacks(source):
        linear = [
            i.value for i in stack.items if isinstance(i.value, cst.Call) and called(i.value) in ("Linear", "Dense")
        ]
        for one, two in itertools.pairwise(linear):
            if called(one) == "Dense" and one.args:
                yield source.replaced(one.args[0].value, "1")
            elif len(one.args) > 1 and two.args and source.code(one.args[1].value) == source.code(two.args[0].value):
                yield source.many(
                    [(one.args[1].value, "1"), (two.args[0].value, "1")], f"{source.code(one)} with one unit"
                )
