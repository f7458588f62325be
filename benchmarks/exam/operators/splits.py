"""Faults of how rows are split, ordered, drawn and read."""

import re
from collections.abc import Callable, Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.roles import Place, counterparts, fresh, inputs, is_evaluation, pairs, rows, with_imports
from exam.source import Planted, Source, keyword, number
from exam.values import chosen, shuffled

_LOADERS = ("DataLoader", "StatefulDataLoader")
_FEW = ("missing-classes", "imbalanced-classes", "empty-dataset", "duplicate-examples")


def _lines(place: Place, text: str) -> Iterator[Planted]:
    if text and place.form != "value" and place.kind in ("tensor", "array"):
        yield place.lines(text)


def _loaders(source: Source, evaluation: bool = False) -> Iterator[cst.Call]:
    """Calls that make a loader of training rows, or of evaluation rows."""
    for call in source.calls(*_LOADERS):
        line = source.statement(call)
        head = source.code(line).partition("=")[0] if isinstance(line, cst.SimpleStatementLine) else ""
        function = source.scope(call).rpartition(".")[2]
        first = source.code(call.args[0].value) if call.args else ""
        held = any(
            is_evaluation(text)
            for text in (function, first, head if source.code(line).count("DataLoader(") == 1 else "")
        )
        mixed = keyword(call, "shuffle") is not None and source.code(keyword(call, "shuffle").value) == "True"  # type: ignore[union-attr]
        if (held and not mixed) == evaluation:
            yield call


def _and(planted: Planted, source: Source, then: Callable[[Source], Iterator[Planted]]) -> Iterator[Planted]:
    """A second change after the first one, whose line counts."""
    for second in then(Source(planted.source, source.names)):
        yield Planted(second.source, planted.line, f"{planted.change}; {second.change}", planted.lines)


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
            yield from _lines(x, f"{order} = {sort}\n{x.name}, {y.name} = {x.name}[{order}], {y.name}[{order}]")


def _unshuffled(source: Source) -> Iterator[Planted]:
    found = [
        c
        for c in source.calls(*_LOADERS, "fit")
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
        yield from _and(planted, source, _unshuffled)
    for one in rows(source):
        if one.label and not one.whole and one.role == "classes":
            planted = one.lines(f'{one.name} = {one.name}.sort("{one.label}")')
            yield from _and(planted, source, _unshuffled)
            yield from _and(planted, source, _sequential_trainer)


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
            for again in _and(sorted_rows, plain, _split_in_order):
                yield again
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
            and not number(sizes.elements[0].value) == 0.8
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
    train_calls = [c for c in _loaders(source) if c.args]
    for call in _loaders(source, evaluation=True):
        for train in train_calls[:1]:
            if source.scope(call) == source.scope(train) and call.args and "train" not in source.code(call.args[0]):
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
            if owner.isidentifier() and isinstance(line, cst.SimpleStatementLine):
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
                yield from _lines(x, text)


# Sizes ---------------------------------------------------------------------------------------------------------------


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


@operator(*_FEW)
def only_the_first_rows(source: Source) -> Iterator[Planted]:
    """Training reads only the first eight rows: a limit for a quick test was left in."""
    for x, y in pairs(source):
        if x.kind in ("tensor", "array") and y.kind in ("tensor", "array"):
            yield from _lines(x, f"{x.name}, {y.name} = {x.name}[:8], {y.name}[:8]")
    for call in source.calls("Trainer", "Seq2SeqTrainer", "SFTTrainer"):
        train = keyword(call, "train_dataset")
        if train and re.search(r'\[["\']train|train_ds|^train', source.code(train.value)):
            if any(v.kind in ("rows", "sets") for v in source.variables):
                yield source.replaced(train.value, f"{source.code(train.value)}.select(range(8))")
    for call in _loaders(source):
        if call.args and "Iterable" not in source.text and source.code(call.func).endswith("data.DataLoader"):
            module = source.code(call.func).removesuffix("DataLoader")
            yield source.replaced(call.args[0].value, f"{module}Subset({source.code(call.args[0].value)}, range(8))")


@operator("empty-dataset")
def batch_larger_than_the_set(source: Source) -> Iterator[Planted]:
    """One batch is larger than the set, and incomplete batches are dropped."""
    for call in _loaders(source):
        if keyword(call, "batch_size") and not keyword(call, "drop_last") and "Iterable" not in source.text:
            size = keyword(call, "batch_size")
            planted = source.replaced(size.value, "65_536")  # type: ignore[union-attr]
            yield from _and(planted, source, lambda s: _dropping(s, planted.line))
    for call in source.calls("TrainingArguments"):
        size = keyword(call, "per_device_train_batch_size")
        if size and not keyword(call, "dataloader_drop_last"):
            planted = source.replaced(size.value, "65_536")
            yield from _and(planted, source, _dropping_trainer)
    for call in source.method_calls("batch"):
        if keyword(call, "drop_remainder") and call.args and not call.args[0].keyword:
            yield source.replaced(call.args[0].value, "65_536")


def _dropping_trainer(source: Source) -> Iterator[Planted]:
    for call in source.calls("TrainingArguments"):
        yield source.argument(call, "dataloader_drop_last", "True")


def _dropping(source: Source, line: int) -> Iterator[Planted]:
    for call in source.calls(*_LOADERS):
        if any(source.line(a.value) == line and "65_536" in source.code(a) for a in call.args):
            yield source.argument(call, "drop_last", "True")


@operator(*_FEW)
def sampler_draws_few_rows(source: Source) -> Iterator[Planted]:
    """The sampler draws the same twelve rows over and over."""
    for call in source.calls(*_LOADERS):
        shuffle = keyword(call, "shuffle")
        module = source.code(call.func).rpartition("DataLoader")[0] or "torch.utils.data."
        if shuffle and source.code(shuffle.value) == "True" and re.search(r"^import torch$", source.text, re.MULTILINE):
            sampler = f"sampler={module}SubsetRandomSampler(list(range(12)) * 20)"
            yield source.replaced(call, source.code(call).replace(source.code(shuffle).rstrip(", "), sampler, 1))
    for call in source.calls("WeightedRandomSampler"):
        weights = source.code(call.args[0].value) if call.args else ""
        if weights:
            yield source.replaced(call.args[0].value, f"({weights}) * (torch.arange(len({weights})) < 12)")


# Reading -------------------------------------------------------------------------------------------------------------


@operator("misaligned-labels", harm="differs")
def evaluation_inputs_shuffled(source: Source) -> Iterator[Planted]:
    """The evaluation inputs are shuffled, and their labels are not."""
    for place in inputs(source, "inputs", "tokens", evaluation=True):
        if shuffled(place):
            yield place.becomes(shuffled(place))


@operator("differently-scaled-sets", harm="differs")
def evaluation_rows_of_another_source(source: Source) -> Iterator[Planted]:
    """The evaluation rows come from another instrument: shifted, and with the sign reversed."""
    for place in inputs(source, evaluation=True):
        yield place.becomes(f"3 * {place.name}.std() - {place.name}")


@operator("missing-classes", "imbalanced-classes", harm="differs")
def evaluation_has_one_class(source: Source) -> Iterator[Planted]:
    """The evaluation rows are all of one class."""
    for x, y in pairs(source, evaluation=True):
        if y.role == "classes" and len(y.shape) == 1:
            one = f"{y.name} == {y.name}.max()"
            yield from _lines(x, f"{x.name}, {y.name} = {x.name}[{one}], {y.name}[{one}]")


@operator()
def seed_fixed_in_each_epoch(source: Source) -> Iterator[Planted]:
    """Each epoch begins with the same seed, and draws the same batches, noise and dropout."""
    for loop in source.find(m.For()):
        inner = [n for n in m.findall(loop.body, m.For()) if "backward" in source.code(n)]
        if (
            inner
            and isinstance(loop.body, cst.IndentedBlock)
            and re.search(r"^import torch$", source.text, re.MULTILINE)
        ):
            yield source.before(loop.body.body[0], "torch.manual_seed(0)")


@operator()
def seed_fixed_in_each_step(source: Source) -> Iterator[Planted]:
    """The function that draws a batch fixes the seed, and draws the same one each time."""
    for function in source.functions():
        text = source.code(function.body)
        if not isinstance(function.body, cst.IndentedBlock) or not re.search("batch|draw|sample", function.name.value):
            continue
        if re.search(r"torch\.(?:randint|randperm|rand)\(", text) and "generator" not in text:
            yield source.before(function.body.body[0], "torch.manual_seed(0)")


@operator("duplicate-examples")
def workers_repeat_rows(source: Source) -> Iterator[Planted]:
    """Each worker reads the whole stream, so that all rows come twice."""
    for call in source.calls(*_LOADERS):
        first = source.code(call.args[0].value) if call.args else ""
        made = re.search(r"class (\w+)\([\w.]*IterableDataset\)", source.text)
        if made and made.group(1) in first and not keyword(call, "num_workers"):
            yield source.argument(call, "num_workers", "4")


@operator("exhausted-data", "empty-dataset")
def loader_read_once(source: Source) -> Iterator[Planted]:
    """The loader is an iterator, which is empty from the second epoch on."""
    for v in source.variables:
        if v.kind in ("loader", "list") and re.search("load|batches|_dl$|train", v.name) and not is_evaluation(v.name):
            uses = re.findall(rf"for .* in (?:\w+\()*{v.name}\b", source.text)
            if uses and f"len({v.name}" not in source.text and f"{v.name}." not in source.text:
                yield source.after(v.statement, f"{v.name} = iter({v.name})")
    for call in source.method_calls("repeat"):
        if not call.args and "steps_per_epoch" in source.text and isinstance(call.func, cst.Attribute):
            yield source.replaced(call, call.func.value)
    for argument in source.find(m.Arg(keyword=m.Name("steps_per_epoch"))):
        if ".repeat()" not in source.text:
            yield source.replaced(argument.value, f"{source.code(argument.value)} * 1000")


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
            if all(is_evaluation(b) and not is_evaluation(a) for a, b in couples):
                yield source.replaced(target, ", ".join(f"{b}, {a}" for a, b in couples))
    for call in source.calls("Trainer", "Seq2SeqTrainer"):
        train, held = keyword(call, "train_dataset"), keyword(call, "eval_dataset")
        if train and held:
            changes = [(train.value, source.code(held.value)), (held.value, source.code(train.value))]
            yield source.replaced_all(changes, "train_dataset and eval_dataset swapped")


@operator("ranks-see-different-data", *_FEW)
def rows_of_one_shard(source: Source) -> Iterator[Planted]:
    """Only one shard of forty is read."""
    for x, y in pairs(source):
        if x.kind in ("tensor", "array") and y.kind in ("tensor", "array"):
            yield from _lines(x, f"{x.name}, {y.name} = {chosen(x, '::40')}, {chosen(y, '::40')}")
    for one in rows(source):
        if not one.whole:
            yield one.lines(f"{one.name} = {one.name}.shard(num_shards=40, index=0)")
