"""Where a program holds its labels, its inputs and its batches, and which of them are for evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m

from exam.source import Planted, Source

LABEL = re.compile(
    r"(?:^|_)(?:y|ys|yb|yy|t|label|lab|target|truth|cls|class|classe|tag|kind|species|sentiment|rating|score|outcome|count)s?\d?(?:_|$)"
    r"|^y(?:_?(?:tr|va|te|tn|ts|b|t)\w*)$|label|target",
    re.IGNORECASE,
)
_INPUT = re.compile(
    r"(?:^|_)(?:x|xs|xb|xx|feat|feature|input|image|img|picture|pixel|pix|data|table|signal|wave|serie|series|sequence|sample|point|row|inputs)s?\d?(?:_|$)"
    r"|^x(?:_?(?:tr|va|te|tn|ts|b)\w*)$|feature|image|pixel|picture|input",
    re.IGNORECASE,
)
_NEITHER = re.compile(
    r"pred|logit|hat|guess|idx|index|indices|order|perm|mask|weight|length|loss|keep|chosen|seed|fold|prob|right|correct"
    r"|hit|noise|random|draw|center|centre|mean|std|share|emb|grad|state|action|reward|return|value|query|hidden|output",
    re.IGNORECASE,
)
_TOKENS = re.compile(r"(?:^|_)(?:ids|idx|tokens?|input_ids)(?:_|$)|_ids$", re.IGNORECASE)
_EVALUATION = re.compile(
    r"(?:^|_|\b)(?:val|valid|validation|test|eval|evaluation|dev|held|holdout|va|te|ev|xv|yv|tv|xval|yval)(?:_|\b|$)"
    r"|(?:val|test|eval|dev|held)(?:_|$)|(?:^|_)(?:val|test|eval)(?!u)",
    re.IGNORECASE,
)
NOT_DATA = ("forward", "call", "predict", "predict_proba", "sample", "generate", "compute_metrics", "encode", "decode")
_ROWS = 24  # a whole set has more


@dataclass(frozen=True)
class Place:
    """A value of the data, and a point of the program from which on a fault can change it."""

    source: Source
    name: str  # as the program writes it: y_train, self.labels, batch["labels"], frame["label"]
    kind: str  # tensor, array, series, list
    role: str  # classes, numbers (regression), several (a label for each position or class), inputs, tokens
    evaluation: bool
    batch: bool
    node: Any  # the statement behind which, or the block in front of whose first line, or the expression
    form: str  # after, first, value
    shape: tuple[int, ...] = ()
    type: str = ""
    distinct: int | None = None
    range: tuple[float | None, float | None] = (None, None)
    scope: str = ""

    @property
    def classes(self) -> int | None:
        """How many classes there are, if the run showed it."""
        whole = self.role == "classes" and self.distinct and self.range[1] is not None and not self.batch
        return max(self.distinct or 0, int(self.range[1] or 0) + 1) if whole else None

    def becomes(self, expression: str) -> Planted:
        """With another value in its place."""
        if self.form == "value":
            return self.source.replaced(self.node, expression)
        return self.lines(f"{self.name} = {expression}")

    def lines(self, text: str) -> Planted:
        """With lines that change it."""
        text = with_imports(self.source, text)
        if self.form == "after":
            return self.source.after(self.node, text)
        return self.source.before(self.node.body[0], text)


def with_imports(source: Source, text: str) -> str:
    """`text` with the names by which the program knows numpy, torch, ..., and an import where it knows none."""
    head = []
    for module, short in (("numpy", "np"), ("torch", "torch"), ("random", "random"), ("tensorflow", "tf")):
        if not re.search(rf"(?<![\w.]){short}\.", text):
            continue
        bound = _imported(source).get(module)
        if bound is None:
            head.append(f"import {module}" + (f" as {short}" if short != module else ""))
        elif bound != short:
            text = re.sub(rf"(?<![\w.]){short}\.", f"{bound}.", text)
    return "\n".join([*head, text])


def known(source: Source, module: str) -> str | None:
    """The name that the program's imports give to a module."""
    return _imported(source).get(module)


def _imported(source: Source) -> dict[str, str]:
    found = {}
    for line in source.module.body:
        for small in getattr(line, "body", ()) if isinstance(line, cst.SimpleStatementLine) else ():
            for alias in small.names if isinstance(small, cst.Import) else ():
                found[source.code(alias.name)] = (
                    source.code(alias.asname.name) if alias.asname else source.code(alias.name)
                )
    return found


def fresh(source: Source, name: str) -> str:
    """A name that the program does not have yet."""
    while re.search(rf"\b{name}\b", source.text):
        name += "_"
    return name


# Roles ---------------------------------------------------------------------------------------------------------------


def labels(source: Source, *roles: str, evaluation: bool = False, whole: bool = False) -> Iterator[Place]:
    """Where labels are held: for training, or for evaluation; only those of whole sets if `whole`."""
    for place in places(source):
        if place.role in (roles or ("classes", "numbers", "several")) and place.evaluation == evaluation:
            if not (whole and place.batch):
                yield place


def inputs(source: Source, *roles: str, evaluation: bool = False, whole: bool = False) -> Iterator[Place]:
    """Where inputs are held."""
    for place in places(source):
        if place.role in (roles or ("inputs",)) and place.evaluation == evaluation and not (whole and place.batch):
            yield place


def pairs(source: Source, evaluation: bool = False, batch: bool = False) -> Iterator[tuple[Place, Place]]:
    """Inputs and the labels of the same rows, both known from the place of the later one on (the first has it)."""
    for x in inputs(source, "inputs", "tokens", evaluation=evaluation):
        for y in labels(source, evaluation=evaluation):
            same = x.scope == y.scope and x.shape[:1] == y.shape[:1] and x.shape and x.batch == y.batch == batch
            if same and "value" not in (x.form, y.form) and x.name != y.name and _match(x.name, y.name):
                later = max((x, y), key=lambda p: _position(source, p))
                yield _at(x, later), y


def counterparts(source: Source) -> Iterator[tuple[Place, Place]]:
    """A variable of training and the one that plays its part in evaluation."""
    found = [p for p in places(source) if p.form == "after" and not p.batch]
    for train in found:
        for held in found:
            alike = train.role == held.role and train.kind == held.kind and train.scope == held.scope
            if alike and held.evaluation and not train.evaluation and train.shape[1:] == held.shape[1:]:
                later = max((train, held), key=lambda p: _position(source, p))
                if used_after(source, train.name, later.node):
                    yield _at(train, later), held


def places(source: Source) -> list[Place]:
    """All of them, in the order in which they were found."""
    kept: list[Place] | None = source.__dict__.get("_places")
    if kept is None:
        kept = [*_variables(source), *_loops(source), *_attributes(source), *_columns(source), *_doors(source)]
        source.__dict__["_places"] = kept
    return kept


def is_evaluation(text: str) -> bool:
    """Whether a name says that what it names is not trained on."""
    return bool(_EVALUATION.search(text)) and not re.search(r"train", text, re.IGNORECASE)


def role_of(name: str, shape: tuple[int, ...], type: str, distinct: int | None, low: float | None = 0) -> str:
    """What a value is for, by its name and what it held; empty where that is not plain."""
    short = name.rpartition(".")[2]
    if _NEITHER.search(short) and not re.search(r"label|target", short, re.IGNORECASE):
        return ""
    whole, named = type.startswith(("int", "uint", "bool")), bool(LABEL.search(short))
    if _INPUT.search(short) and len(shape) >= 2:
        return "tokens" if type in ("int64", "int32") and len(shape) == 2 else "inputs"
    if _TOKENS.search(short):
        return "tokens" if whole and len(shape) == 2 else ""
    return _label_role(shape, whole, named, distinct, low, bool(_INPUT.search(short)) and not named)


def _label_role(
    shape: tuple[int, ...], whole: bool, named: bool, distinct: int | None, low: float | None, of_inputs: bool
) -> str:
    rows, few = shape[0] if shape else 0, bool(distinct) and 2 <= (distinct or 0) <= 100
    if len(shape) == 1 or (len(shape) == 2 and shape[1] == 1):
        if (
            whole
            and few
            and (named or (rows >= 3 * (distinct or 0) and low == 0 and len(shape) == 1))
            and not of_inputs
        ):
            return "classes"
        return ("classes" if distinct == 2 else "numbers") if named and not whole and rows > 1 else ""
    if len(shape) >= 2:
        return "several" if named else "inputs" if not whole and rows >= _ROWS and len(shape) <= 4 else ""
    return ""


# Where they are ------------------------------------------------------------------------------------------------------


def _variables(source: Source) -> Iterator[Place]:
    for v in source.variables:
        function = v.scope.rpartition(".")[2]
        if v.kind not in ("tensor", "array", "series") or not v.shape or function in NOT_DATA:
            continue
        role = role_of(v.name, v.shape, v.type, v.distinct, v.range[0])
        step = bool(re.search(r"step$|loss$|^train_epoch|batch", function))
        if role and (step or v.shape[0] >= _ROWS) and used_after(source, v.name, v.statement):
            evaluation = is_evaluation(v.name) or is_evaluation(function)
            yield Place(
                source, v.name, v.kind, role, evaluation, step, v.statement, "after",
                v.shape, v.type, v.distinct, v.range, v.scope,
            )  # fmt: skip


def _loops(source: Source) -> Iterator[Place]:
    """The names that a loop over batches binds, and what it takes out of a dictionary."""
    for loop in source.find(m.For()):
        body, over = source.code(loop.body), source.code(loop.iter)
        if not isinstance(loop.body, cst.IndentedBlock) or "range(" in over:
            continue
        function = source.scope(loop).rpartition(".")[2]
        trains = "backward" in body or "zero_grad" in body
        evaluation = not trains and (is_evaluation(over) or is_evaluation(function) or "argmax" in body)
        if not trains and not evaluation:
            continue
        for name, seen in _bound(source, loop):
            shape = tuple(seen.get("shape") or ())
            role = role_of(name, shape, seen.get("type", ""), seen.get("distinct"))
            role = role or ("classes" if LABEL.search(name) and seen.get("type") == "int64" and len(shape) == 1 else "")
            if role and shape and not re.search(rf"\b{name}\b", over):
                yield Place(
                    source, name, "tensor", role, evaluation, True, loop.body, "first",
                    shape, seen["type"], seen.get("distinct"), tuple(seen.get("range") or (None, None)), source.scope(loop),
                )  # fmt: skip
        for name, role in _keys(source, loop, body):
            yield Place(source, name, "tensor", role, evaluation, True, loop.body, "first", scope=source.scope(loop))


def _bound(source: Source, loop: cst.For) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in m.findall(loop.target, m.Name()):
        seen = source.names.get(f"{source.scope(loop)}::{name.value}")
        if seen and seen["kind"] == "tensor":
            yield name.value, seen


def _keys(source: Source, loop: cst.For, body: str) -> Iterator[tuple[str, str]]:
    for name in m.findall(loop.target, m.Name()):
        found = dict.fromkeys(re.findall(rf"\b{name.value}\[[\"'](\w+)[\"']\]", body))
        if f"**{name.value})" in body or f"**{name.value}," in body:
            found |= dict.fromkeys(["labels", "input_ids"]) if "oken" in source.text else {}
        for key in found:
            if key == "input_ids":
                yield f'{name.value}["{key}"]', "tokens"
            elif LABEL.search(key):
                yield f'{name.value}["{key}"]', "classes" if "num_labels" in source.text else "labels of a kind"


def _attributes(source: Source) -> Iterator[Place]:
    """self.labels = ... of the program's own data sets."""
    for line in source.find(m.SimpleStatementLine()):
        scope = source.scope(line)
        if not scope.endswith("__init__") or "__getitem__" not in source.code(source.inside(line, cst.ClassDef)):
            continue
        for name, value in _assigned_attributes(source, line):
            text = source.code(value)
            kind = "tensor" if re.search(r"torch\.|as_tensor|\.float\(\)|\.long\(\)", text) else ""
            kind = kind or ("array" if re.search(r"\bnp\.|rng\.|draw\.|numpy|astype", text) else "")
            short = name.rpartition(".")[2]
            role = (
                ""
                if _NEITHER.search(short)
                else "label"
                if LABEL.search(short)
                else "inputs" * bool(_INPUT.search(short))
            )
            if kind and role:
                role = _guessed_label(text) if role == "label" else role
                yield Place(source, name, kind, role, False, False, line, "after", scope=scope)


def _guessed_label(text: str) -> str:
    return "numbers" if "float" in text or "normal" in text else "classes"


def _assigned_attributes(source: Source, line: cst.SimpleStatementLine) -> Iterator[tuple[str, cst.BaseExpression]]:
    for small in line.body:
        if not isinstance(small, cst.Assign):
            continue
        target, value = small.targets[0].target, small.value
        couples = [(target, value)]
        if (
            isinstance(target, cst.Tuple)
            and isinstance(value, cst.Tuple)
            and len(target.elements) == len(value.elements)
        ):
            couples = [(a.value, b.value) for a, b in zip(target.elements, value.elements)]
        for to, expression in couples:
            if m.matches(to, m.Attribute(value=m.Name("self"))):
                yield source.code(to), expression


def _columns(source: Source) -> Iterator[Place]:
    """The label column of a pandas table."""
    for v in source.variables:
        for column in v.columns if v.kind == "frame" else ():
            if re.fullmatch(r"y|labels?|targets?|class|sentiment|species|rating", column, re.IGNORECASE):
                if v.shape[0] >= _ROWS and used_after(source, v.name, v.statement):
                    yield Place(
                        source, f'{v.name}["{column}"]', "series", "classes", is_evaluation(v.name), False,
                        v.statement, "after", (v.shape[0],), scope=v.scope,
                    )  # fmt: skip


def _doors(source: Source) -> Iterator[Place]:
    """The last argument of TensorDataset(x, y), of fit(x, y), of train_test_split(x, y), of slices of tensors."""
    names = {p.name for p in _variables(source)}
    for call in source.calls("TensorDataset", "train_test_split", "fit", "from_tensor_slices"):
        args = [a.value for a in call.args if not a.keyword and not a.star]
        if len(args) == 1 and isinstance(args[0], cst.Tuple):
            args = [e.value for e in args[0].elements]
        kind = "tensor" if call.func and source.code(call.func).endswith("TensorDataset") else "array"
        for at, value in enumerate(args[:2]):
            text, whole = source.code(value), {n.value for n in m.findall(value, m.Name())}
            word = re.search(r"[\w.]+", re.sub(r"^[\w.]*(?:tensor|from_numpy|Tensor)\(", "", text))
            found = word.group() if word else ""
            if len(args) != 2 or whole & names or m.matches(value, m.Name() | m.Dict()) or not found:
                continue
            role = ("numbers" if "float" in text else "classes") if at else "inputs"
            if (LABEL if at else _INPUT).search(found.rpartition(".")[2]):
                evaluation = is_evaluation(source.code(source.statement(call)).partition("\n")[0])
                name = f"({text})" if isinstance(value, cst.BinaryOperation) else text
                yield Place(source, name, kind, role, evaluation, False, value, "value", scope=source.scope(call))


# Helpers -------------------------------------------------------------------------------------------------------------


def used_after(source: Source, name: str, statement: cst.CSTNode) -> bool:
    last = source.line(statement) + source.code(statement).count("\n")
    rest = "\n".join(source.text.splitlines()[last:])
    return bool(re.search(rf"\b{re.escape(name)}\b", rest))


def _position(source: Source, place: Place) -> int:
    node = place.node if place.form == "after" else place.node.body[0]
    return source.line(node)


def _at(place: Place, other: Place) -> Place:
    kept = {k: getattr(place, k) for k in Place.__dataclass_fields__}
    return Place(**{**kept, "node": other.node, "form": other.form})


def _match(x: str, y: str) -> bool:
    """Whether two names are of one set: x_train and y_train, X and y."""
    rest = [
        re.sub(
            r"^(?:x|y|inputs?|labels?|targets?|features?|images?|data)_?|_?(?:x|y|inputs?|labels?|targets?)$",
            "",
            n.lower(),
        )
        for n in (x, y)
    ]
    return rest[0] == rest[1] or not ({"train", "test", "val", "tr", "te", "va", "valid"} & set(rest))
