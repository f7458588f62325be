"""Faults of how rows are split, ordered, drawn and read."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.loaders import LOADERS, and_then, lines, loaders
from exam.operators import operator
from exam.roles import counterparts, fresh, inputs, is_evaluation, pairs, used_after, with_imports
from exam.sets import rows
from exam.source import Planted, Source, keyword, number
from exam.values import shuffled


def _sorted_pairs(source: Source) -> Iterator[Planted]:
    for x, y in pairs(source):
        if (
            y.role == "classes"
            and len(y.shape) == 1
            and x.kind in ("tensor", "array")
            and y.kind in ("tensor", "array")
        ):
            order = fresh(source, "order")
            sort = f"torch.argsort({y.name})" if y.kind == "tensor" else f'np.argsort({y.name}, kind="stable")'
            yield from lines(x, f"{order} = {sort}\n{x.name}, {y.name} = {x.name}[{order}], {y.name}[{order}]")


def _unshuffled(source: Source) -> Iterator[Planted]:
    found = [
        c
        for c in source.calls(*LOADERS, "fit")
        if keyword(c, "shuffle") and "True" in source.code(keyword(c, "shuffle"))
    ]  # type: ignore[arg-type]
    drawn = [
        c
        for c in source.calls("randperm", "permutation")
        if source.in_loop(c) and "perm" in source.code(source.statement(c))
    ]
    fits = [
        c
        for c in source.method_calls("fit")
        if len(c.args) > 2 and "shuffle" not in source.code(c) and "keras" in source.text
    ]
    if found:
        yield source.replaced_all([(keyword(c, "shuffle").value, "False") for c in found], "shuffle=False")  # type: ignore[union-attr]
    elif drawn and all(len(c.args) == 1 for c in drawn):
        yield source.replaced_all([(c, _in_order(source, c)) for c in drawn], "rows in their order")
    elif fits:
        yield source.argument(fits[0], "shuffle", "False")


def _in_order(source: Source, call: cst.Call) -> str:
    function = source.code(call.func)
    count = source.code(call.args[0].value)
    if function.endswith("randperm"):
        return f"{function.removesuffix('randperm')}arange({count})"
    return with_imports(source, f"np.arange({count})").rpartition("\n")[2]


@operator("sorted-without-shuffle")
def sorted_and_not_shuffled(source: Source) -> Iterator[Planted]:
    """The rows are sorted by class, and training reads them in that order."""
    for planted in _sorted_pairs(source):
        yield from and_then(planted, source, _unshuffled)
    for one in rows(source):
        if one.label and not one.whole and one.role == "classes":
            planted = one.lines(f'{one.name} = {one.name}.sort("{one.label}")')
            yield from and_then(planted, source, _unshuffled)
            yield from and_then(planted, source, _sequential_trainer)


def _sequential_trainer(source: Source) -> Iterator[Planted]:
    for call in source.calls("TrainingArguments"):
        yield source.argument(call, "train_sampling_strategy", '"sequential"')


@operator("sorted-without-shuffle")
def not_shuffled(source: Source) -> Iterator[Planted]:
    """The training rows come in the order of the file in each epoch."""
    yield from _unshuffled(source)


@operator("split-of-sorted-data", "missing-classes", "sorted-without-shuffle")
def sorted_rows_split(source: Source) -> Iterator[Planted]:
    """Rows sorted by class are split in two without shuffling."""
    splits = source.calls("train_test_split")
    for call in splits:
        kept = [a for a in call.args if not (a.keyword and a.keyword.value in ("stratify", "shuffle", "random_state"))]
        if not isinstance(call.func, cst.Name):
            continue
        plain = Source(source.swapped(call, call.with_changes(args=kept), 1, "").source, source.names)
        for sorted_rows in _sorted_pairs(plain):
            if sorted_rows.line <= source.line(call):
                yield from and_then(sorted_rows, plain, _split_in_order)
    for planted in _sorted_pairs(source) if not splits else ():
        line = planted.source.splitlines()[planted.line + planted.lines - 1 :]
        if re.search(r"\[:\s*\w+\]|\[\w+:\]|validation_split", "\n".join(line)):
            yield planted
    for call in splits:
        if isinstance(call.func, cst.Attribute):
            owner, line = source.code(call.func.value), source.statement(call)
            label = "labels" if '"labels"' in source.text else "label"
            if owner.isidentifier() and isinstance(line, cst.SimpleStatementLine) and "label" in source.text:
                whole = f'{owner}.sort("{label}").train_test_split'
                yield source.replaced(call, source.code(_unseeded(call)).replace(f"{owner}.train_test_split", whole, 1))


def _unseeded(call: cst.Call) -> cst.Call:
    kept = [a for a in call.args if not (a.keyword and a.keyword.value in ("seed", "shuffle", "stratify_by_column"))]
    fixed = [a.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))) for a in kept]
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return call.with_changes(args=[*fixed, cst.Arg(cst.Name("False"), keyword=cst.Name("shuffle"), equal=equal)])


def _split_in_order(source: Source) -> Iterator[Planted]:
    for call in source.calls("train_test_split"):
        yield source.argument(call, "shuffle", "False")


@operator("split-of-sorted-data", "missing-classes", "misaligned-labels")
def permutation_missing(source: Source) -> Iterator[Planted]:
    """The rows are split where they stand in the file: their permutation is missing."""
    for call in source.calls("randperm", "permutation"):
        if (
            not source.in_loop(call)
            and call.args
            and re.search("order|perm|idx|ind", source.code(source.statement(call)))
        ):
            yield source.replaced(call, _in_order(source, call))
    for call in source.calls("random_split"):
        sizes = call.args[1].value if len(call.args) > 1 else None
        if (
            isinstance(sizes, (cst.List, cst.Tuple))
            and len(sizes.elements) == 2
            and number(sizes.elements[0].value) != 0.8
        ):
            data, first = source.code(call.args[0].value), source.code(sizes.elements[0].value)
            subset = source.code(call.func).replace("random_split", "Subset")
            if subset != "Subset":
                parts = f"({subset}({data}, range({first})), {subset}({data}, range({first}, len({data}))))"
                yield source.replaced(call, parts)


# Leaks ---------------------------------------------------------------------------------------------------------------


@operator("train-eval-overlap", "evaluation-on-training-data", harm="differs")
def test_rows_in_training(source: Source) -> Iterator[Planted]:
    """The evaluation rows are also training rows."""
    held = list(pairs(source, evaluation=True))
    for x, y in pairs(source):
        for a, b in held:
            if x.kind == a.kind and y.kind == b.kind and x.shape[1:] == a.shape[1:] and x.scope == a.scope:
                join = "torch.cat" if x.kind == "tensor" else "np.concatenate"
                other = "torch.cat" if y.kind == "tensor" else "np.concatenate"
                text = f"{x.name}, {y.name} = {join}([{x.name}, {a.name}]), {other}([{y.name}, {b.name}])"
                later = max((x, a), key=lambda p: source.line(p.node))
                if used_after(source, x.name, later.node):
                    yield later.lines(text)


@operator("evaluation-on-training-data", "train-eval-overlap", harm="differs")
def evaluated_on_training_rows(source: Source) -> Iterator[Planted]:
    """The evaluation set is the training set."""
    for call in source.calls("Trainer", "Seq2SeqTrainer", "SFTTrainer"):
        train = keyword(call, "train_dataset")
        if train and keyword(call, "eval_dataset"):
            yield source.replaced(keyword(call, "eval_dataset").value, train.value)  # type: ignore[union-attr]
    for call in source.method_calls("fit"):
        held, args = keyword(call, "validation_data"), [source.code(a.value) for a in call.args if not a.keyword]
        if held and args:
            yield source.replaced(held.value, f"({', '.join(args[:2])})" if len(args) > 1 else args[0])
    train_calls = [c for c in loaders(source) if c.args]
    for call in loaders(source, evaluation=True):
        for train in train_calls[:1]:
            if (
                source.scope(call) == source.scope(train)
                and call.args
                and source.code(call.args[0].value) != source.code(train.args[0].value)
            ):
                yield source.replaced(call.args[0].value, train.args[0].value)
    done = set()
    for train, held in counterparts(source):
        alike = re.sub("train|tr", "", train.name.lower()) == re.sub("test|val|valid|te|va|ev", "", held.name.lower())
        other = next(
            ((t, h) for t, h in counterparts(source)
             if t.role != train.role and h.node is held.node and t.scope == train.scope), None,
        )  # fmt: skip
        if alike and other and held.node not in done:
            done.add(held.node)
            yield train.lines(f"{held.name}, {other[1].name} = {train.name}, {other[0].name}")


@operator("train-eval-overlap", "duplicate-examples", harm="differs")
def rows_repeated_before_the_split(source: Source) -> Iterator[Planted]:
    """Rows are repeated to have more of them, and then split: copies are on both sides."""
    for call in source.calls("train_test_split"):
        if isinstance(call.func, cst.Name) and not keyword(call, "stratify"):
            parts = [a.value for a in call.args if not a.keyword]
            if parts and all(isinstance(p, cst.Name) for p in parts):
                text = "\n".join(f"{p.value} = np.repeat({p.value}, 5, axis=0)" for p in parts)  # type: ignore[attr-defined]
                line = source.statement(call)
                if isinstance(line, cst.SimpleStatementLine):
                    yield source.before(line, with_imports(source, text))
        if isinstance(call.func, cst.Attribute):
            owner, line = source.code(call.func.value), source.statement(call)
            if any(v.name == owner and v.kind in ("rows", "sets") for v in source.variables) and isinstance(
                line, cst.SimpleStatementLine
            ):
                yield source.before(line, f"{owner} = {owner}.select(list(range(len({owner}))) * 4)")
    for x, y in pairs(source):
        whole = not re.search("train|tr$", x.name, re.IGNORECASE) and x.kind in ("tensor", "array") == (
            y.kind in ("tensor", "array")
        )
        if whole and x.shape[0] < 4000 and "train_test_split" not in source.text and "randperm(" in source.text:
            count = {"tensor": "torch.arange(len(@)).repeat(4)", "array": "np.tile(np.arange(len(@)), 4)"}
            if x.kind in count and y.kind in count:
                taken = fresh(source, "taken")
                text = f"{taken} = {count[y.kind].replace('@', y.name)}\n{x.name}, {y.name} = {x.name}[{taken}], {y.name}[{taken}]"
                yield from lines(x, text)


@operator("missing-classes", "imbalanced-classes", "train-eval-overlap")
def split_reversed(source: Source) -> Iterator[Planted]:
    """Training gets the small part of the split, and evaluation the large one."""
    for call in source.calls("train_test_split"):
        size = keyword(call, "test_size")
        line = source.statement(call)
        if size and isinstance(line, cst.SimpleStatementLine):
            share = number(size.value)
            fewer = source.replaced(size.value, f"{1 - share:.2g}") if share and share < 1 else None
            yield fewer or source.replaced(call, source.code(call).replace("test_size", "train_size", 1))
    for argument in source.find(m.Arg(keyword=m.Name("validation_split"))):
        share = number(argument.value)
        if share:
            yield source.replaced(argument.value, f"{1 - share:.2g}")


@operator("missing-classes", "imbalanced-classes", "empty-dataset")
def nearly_all_rows_held_out(source: Source) -> Iterator[Planted]:
    """Ninety-seven rows of a hundred are held out."""
    for argument in source.find(m.Arg(keyword=m.Name("test_size")), m.Arg(keyword=m.Name("validation_split"))):
        yield source.replaced(argument.value, "0.97")


@operator("missing-classes", "imbalanced-classes", harm="differs")
def evaluation_has_one_class(source: Source) -> Iterator[Planted]:
    """The evaluation rows are all of one class."""
    for x, y in pairs(source, evaluation=True):
        if y.role == "classes" and len(y.shape) == 1:
            one = f"{y.name} == {y.name}.max()"
            yield from lines(x, f"{x.name}, {y.name} = {x.name}[{one}], {y.name}[{one}]")


@operator("layer-size-mismatch", "misaligned-labels", "wrong-target-dtype", "swapped-targets", "wrong-number-of-axes")
def split_unpacked_in_the_wrong_order(source: Source) -> Iterator[Planted]:
    """The four parts of a split are taken in another order than they come in."""
    for line in source.find(m.SimpleStatementLine(body=[m.Assign(value=m.Call())])):
        assign = line.body[0]
        target = assign.targets[0].target
        if (
            "train_test_split" in source.code(assign.value.func)
            and isinstance(target, cst.Tuple)
            and len(target.elements) == 4
        ):
            names = [source.code(e.value) for e in target.elements]
            order = ", ".join(names[i] for i in (0, 2, 1, 3))
            yield source.replaced(target, order)
            swapped = ", ".join(names[i] for i in (1, 0, 2, 3))
            yield source.replaced(target, swapped)


@operator("missing-classes", "imbalanced-classes", "split-of-sorted-data")
def training_and_evaluation_swapped(source: Source) -> Iterator[Planted]:
    """The model is trained on the evaluation rows and evaluated on the training rows."""
    for line in source.find(m.SimpleStatementLine(body=[m.Assign()])):
        target = line.body[0].targets[0].target
        if isinstance(target, cst.Tuple) and len(target.elements) in (2, 4):
            names = [source.code(e.value) for e in target.elements]
            couples = [(names[i], names[i + 1]) for i in range(0, len(names), 2)]
            alone = len(names) == 2 and re.search(r"^[xy]|[xy]$", names[0], re.IGNORECASE)  # their labels stay
            if not alone and all(is_evaluation(b) and not is_evaluation(a) for a, b in couples):
                yield source.replaced(target, ", ".join(f"{b}, {a}" for a, b in couples))
    for call in source.calls("Trainer", "Seq2SeqTrainer"):
        train, held = keyword(call, "train_dataset"), keyword(call, "eval_dataset")
        if train and held:
            changes = [(train.value, source.code(held.value)), (held.value, source.code(train.value))]
            yield source.replaced_all(changes, "train_dataset and eval_dataset swapped")


@operator("misaligned-labels", harm="differs")
def evaluation_inputs_shuffled(source: Source) -> Iterator[Planted]:
    """The evaluation inputs are shuffled, and their labels are not."""
    for place in inputs(source, "inputs", "tokens", evaluation=True):
        if shuffled(place):
            yield place.becomes(shuffled(place))


@operator("held-out-at-constant", "differently-scaled-sets", harm="differs")
def evaluation_rows_of_another_source(source: Source) -> Iterator[Planted]:
    """The evaluation rows come from another instrument: shifted, and with the sign reversed."""
    for place in inputs(source, evaluation=True):
        yield place.becomes(f"3 * {place.name}.std() - {place.name}")
