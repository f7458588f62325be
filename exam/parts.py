"""What programs are made of, for operators of several families: losses, layers, models, what evaluates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from exam.source import Source, called, keyword

UNLEARNT = ("unlearnable-batch",)  # true of whatever keeps a model from learning

LOSSES = {
    "CrossEntropyLoss": "classes",
    "cross_entropy": "classes",
    "NLLLoss": "logarithms",
    "nll_loss": "logarithms",
    "BCEWithLogitsLoss": "logits",
    "binary_cross_entropy_with_logits": "logits",
    "BCELoss": "probabilities",
    "binary_cross_entropy": "probabilities",
    "MSELoss": "numbers",
    "mse_loss": "numbers",
    "L1Loss": "numbers",
    "l1_loss": "numbers",
    "SmoothL1Loss": "numbers",
    "smooth_l1_loss": "numbers",
    "HuberLoss": "numbers",
    "huber_loss": "numbers",
}
KERAS_LOSSES = {  # as text and as class
    "sparse_categorical_crossentropy": "SparseCategoricalCrossentropy",
    "categorical_crossentropy": "CategoricalCrossentropy",
    "binary_crossentropy": "BinaryCrossentropy",
    "mse": "MeanSquaredError",
    "mean_squared_error": "MeanSquaredError",
    "mae": "MeanAbsoluteError",
}
ACTIVATIONS = ("ReLU", "GELU", "SiLU", "Tanh", "LeakyReLU", "ELU", "Mish", "Hardswish", "ReLU6", "Softplus")
_FUNCTIONS = ("relu", "gelu", "silu", "tanh", "leaky_relu", "elu", "mish")
_KERAS_NAMES = ("relu", "gelu", "silu", "swish", "tanh", "elu", "selu", "leaky_relu")
DENSE = ("Linear", "Dense", "LazyLinear")
_EVALUATES = re.compile(r"val|test|eval|predict|infer|score|metric", re.IGNORECASE)
_TRAINED = r"\b{0}\.(?:parameters|compile|fit|train)\(|model={0}\b|Trainer\(\s*{0}\b|\.fit\({0}\b|prepare\(\s*{0}\b"


def is_keras(source: Source) -> bool:
    """Whether the program trains with Keras."""
    return bool(re.search(r"^(?:import|from) (?:keras|tensorflow)\b", source.text, re.MULTILINE))


def torch_of(source: Source) -> str:
    """An expression for torch in any scope of the program."""
    return (
        "torch"
        if re.search(r"^import torch$|^import torch\b[^.]*$", source.text, re.MULTILINE)
        else '__import__("torch")'
    )


def beside(source: Source, call: cst.Call, name: str) -> str:
    """Another name of the package that the called one comes from: ReLU beside nn.Linear(...) is nn.ReLU."""
    if isinstance(call.func, cst.Attribute):
        return f"{source.code(call.func.value)}.{name}"
    return f'__import__("{"keras" if is_keras(source) else "torch"}").{"layers" if is_keras(source) else "nn"}.{name}'


def in_evaluation(source: Source, node: cst.CSTNode) -> bool:
    """Whether a node is where the program evaluates: by the function's name, no_grad, or because it is printed."""
    if _EVALUATES.search(source.scope(node)):
        return True
    parent = source.parent(node)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "item":
        return True
    while node is not source.module:
        if isinstance(node, cst.With) and re.search(r"no_grad|inference_mode", " ".join(map(source.code, node.items))):
            return True
        if isinstance(node, cst.FunctionDef):
            return any(re.search(r"no_grad|inference_mode", source.code(d)) for d in node.decorators)
        node = source.parent(node)
    return False


# Losses --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LossCall:
    """A call of a torch loss: what it expects, the outputs and the targets."""

    call: cst.Call
    kind: str  # a value of LOSSES
    output: cst.BaseExpression
    target: cst.BaseExpression


def loss_calls(source: Source, *kinds: str, training: bool = True) -> Iterator[LossCall]:
    """Calls of functional losses and of loss objects; those of the training only, or of everything."""
    objects = {
        source.code(a.targets[0].target): LOSSES[called(a.value)]
        for a in source.find(m.Assign(value=m.Call()))
        if called(a.value) in LOSSES
    }
    for call in source.find(m.Call()):
        kind = objects.get(source.code(call.func)) or (
            LOSSES.get(called(call.func)) if isinstance(call.func, cst.Call) else _functional(call)
        )
        if kind is None or (kinds and kind not in kinds) or len(call.args) < 2 or any(a.keyword for a in call.args[:2]):
            continue
        if not (training and in_evaluation(source, call)):
            yield LossCall(call, kind, call.args[0].value, call.args[1].value)


def _functional(call: cst.Call) -> str | None:
    return LOSSES.get(called(call)) if called(call).islower() else None


def loss_objects(source: Source, *kinds: str) -> list[cst.Call]:
    """Constructions of torch's loss classes."""
    return [c for c in source.find(m.Call()) if called(c)[:1].isupper() and LOSSES.get(called(c)) in kinds]


def compiles(source: Source) -> list[cst.Call]:
    """Keras's compile(...)."""
    return [
        c for c in source.method_calls("compile") if is_keras(source) and "torch.compile" not in source.code(c.func)
    ]


def keras_losses(source: Source) -> Iterator[tuple[cst.BaseExpression, str]]:
    """What compile gets as a loss: the expression (a text or an object) and the name of its class."""
    for node in source.find(m.SimpleString()):
        name = KERAS_LOSSES.get(str(node.evaluated_value))
        inside = source.inside(node, cst.Arg, cst.DictElement)
        if name and is_keras(source) and "loss" in source.code(source.parent(inside) if inside else node):
            yield node, name
    for call in source.calls(*KERAS_LOSSES.values()):
        yield call, called(call)


# Layers --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """A Sequential: torch's with arguments, or Keras's with a list."""

    call: cst.Call
    items: tuple[cst.Arg | cst.Element, ...]

    def with_items(self, items: Sequence[cst.Arg | cst.Element]) -> cst.Call:
        """The call with other layers."""
        first = self.call.args[0]
        if isinstance(first.value, cst.List):
            return self.call.with_changes(
                args=[first.with_changes(value=first.value.with_changes(elements=items)), *self.call.args[1:]]
            )
        return self.call.with_changes(args=items)

    def item(self, text: str) -> cst.Arg | cst.Element:
        """A further layer."""
        value = cst.parse_expression(text)
        return cst.Element(value) if isinstance(self.call.args[0].value, cst.List) else cst.Arg(value)


def stacks(source: Source) -> Iterator[Stack]:
    """All of them, those inside other ones too."""
    for call in source.calls("Sequential"):
        if not call.args or call.args[0].keyword:
            continue
        first = call.args[0].value
        if isinstance(first, cst.List):
            yield Stack(call, tuple(first.elements))  # type: ignore[arg-type]
        elif not isinstance(first, (cst.ListComp, cst.GeneratorExp)):
            yield Stack(call, tuple(call.args))


def built(source: Source, owner: cst.ClassDef) -> dict[str, cst.Call]:
    """The calls that a class assigns to attributes of self."""
    found = {}
    for node in m.findall(owner, m.Assign(value=m.Call())):
        target = node.targets[0].target  # type: ignore[attr-defined]
        if m.matches(target, m.Attribute(value=m.Name("self"))):
            found[target.attr.value] = node.value  # type: ignore[attr-defined]
    return found


def forwards(source: Source) -> Iterator[tuple[cst.ClassDef, cst.FunctionDef]]:
    """The forward or call methods of classes."""
    for function in source.functions("forward", "call"):
        owner = source.inside(function, cst.ClassDef)
        if owner is not None and isinstance(function.body, cst.IndentedBlock):
            yield owner, function


def last_layers(source: Source, *names: str) -> list[cst.Call]:
    """Constructions of the layers that models end with, as far as they have one of these names (Linear, Dense)."""
    wanted, found = names or DENSE, []
    for stack in stacks(source):
        found.append(stack.items[-1].value)
    for owner, function in forwards(source):
        layers = built(source, owner)
        for name in _returned(source, function):
            if name in layers:
                found.append(layers[name])
    for call in source.calls("Model"):
        outputs = keyword(call, "outputs") or (call.args[1] if len(call.args) > 1 else None)
        found.extend(_constructions(source, outputs.value) if outputs else ())
    return [c for i, c in enumerate(found) if isinstance(c, cst.Call) and called(c) in wanted and c not in found[:i]]


def _returned(source: Source, function: cst.FunctionDef) -> Iterator[str]:
    """The attributes of self that are called last for what a forward returns."""
    text = {}
    for node in m.findall(function, m.Assign()):
        text[source.code(node.targets[0].target)] = source.code(node.value)  # type: ignore[attr-defined]
    for node in m.findall(function, m.Return()):
        value = node.value  # type: ignore[attr-defined]
        parts = [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value] if value else []
        for part in parts:
            code = source.code(part)
            found = re.search(r"self\.(\w+)\(", text.get(code, code))
            if found:
                yield found.group(1)


def _constructions(source: Source, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The layers of Dense(...)(x), of a name assigned so, and of dictionaries and lists of them."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Call):
        yield node.func
    elif isinstance(node, (cst.Dict, cst.List)):
        for element in node.elements:
            yield from _constructions(source, element.value)
    elif isinstance(node, cst.Name):
        same = m.Assign(targets=[m.AssignTarget(target=m.Name(node.value))])
        for assign in source.find(same)[-1:]:
            if not isinstance(assign.value, cst.Name):
                yield from _constructions(source, assign.value)


def activation_layers(source: Source) -> list[cst.Call]:
    """nn.ReLU() and the like, layers.Activation("relu")."""
    return [c for c in source.calls(*ACTIVATIONS, "Activation") if source.inside(c, cst.ClassDef, cst.Call, cst.Assign)]


def activation_calls(source: Source) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """F.relu(x), torch.tanh(x), x.relu(): the call and its x."""
    for call in source.calls(*_FUNCTIONS):
        if isinstance(call.func, cst.Attribute) and not re.search(r"loss|gate", source.code(source.statement(call))):
            if len(call.args) == 1 and source.code(call.func.value) in (
                "F",
                "torch",
                "nn.functional",
                "ops",
                "torch.nn.functional",
            ):
                yield call, call.args[0].value
            elif not call.args:
                yield call, call.func.value


def activation_arguments(source: Source) -> list[cst.Arg]:
    """activation="relu" of Keras's layers."""
    same = m.Arg(keyword=m.Name("activation"), value=m.SimpleString())
    return [a for a in source.find(same) if str(a.value.evaluated_value) in _KERAS_NAMES]


# Models --------------------------------------------------------------------------------------------------------------


def models(source: Source) -> list[tuple[str, cst.SimpleStatementLine]]:
    """The models that are trained: their names, and the statements that build them."""
    classes = {owner.name.value for owner, _ in forwards(source)}
    found: dict[tuple[str, str], cst.SimpleStatementLine] = {}
    for variable in source.variables:
        if variable.kind == "model":
            found[variable.scope, variable.name] = variable.statement
    for assign in source.find(m.Assign(targets=[m.AssignTarget(target=m.Name())], value=m.Call())):
        value = assign.value
        while isinstance(value, cst.Call) and called(value) in ("to", "cpu", "float", "train"):
            value = value.func.value if isinstance(value.func, cst.Attribute) else None
        name = called(value) if isinstance(value, cst.Call) else ""
        if name in classes | {"Sequential", "Model", "from_pretrained"} or re.search(
            r"For[A-Z]\w+(?:ion|ing|LM)$", name
        ):
            line = source.statement(assign)
            if not source.in_loop(assign) and isinstance(line, cst.SimpleStatementLine):
                found.setdefault((source.scope(assign), assign.targets[0].target.value), line)
    return [(name, line) for (_, name), line in found.items() if re.search(_TRAINED.format(name), source.text)]
