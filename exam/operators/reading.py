"""Faults of which rows are read, how often, and by whom."""

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.loaders import LOADERS, and_then, lines, loaders
from exam.operators import operator
from exam.roles import is_evaluation, pairs
from exam.sets import rows
from exam.source import Planted, Source, keyword
from exam.values import chosen

_FEW = ("missing-classes", "imbalanced-classes", "empty-dataset", "duplicate-examples", "few-distinct-rows")


@operator(*_FEW)
def only_the_first_rows(source: Source) -> Iterator[Planted]:
    """Training reads only the first eight rows: a limit for a quick test was left in."""
    for x, y in pairs(source):
        if x.kind in ("tensor", "array") and y.kind in ("tensor", "array"):
            yield from lines(x, f"{x.name}, {y.name} = {x.name}[:8], {y.name}[:8]")
    for call in source.calls("Trainer", "Seq2SeqTrainer", "SFTTrainer"):
        train = keyword(call, "train_dataset")
        if train and re.search(r'\[["\']train|train_ds|^train', source.code(train.value)):
            if any(v.kind in ("rows", "sets") for v in source.variables):
                yield source.replaced(train.value, f"{source.code(train.value)}.select(range(8))")
    for call in loaders(source):
        if call.args and "Iterable" not in source.text and source.code(call.func).endswith("data.DataLoader"):
            module = source.code(call.func).removesuffix("DataLoader")
            yield source.replaced(call.args[0].value, f"{module}Subset({source.code(call.args[0].value)}, range(8))")


@operator("empty-dataset")
def batch_larger_than_the_set(source: Source) -> Iterator[Planted]:
    """One batch is larger than the set, and incomplete batches are dropped."""
    for call in loaders(source):
        if keyword(call, "batch_size") and not keyword(call, "drop_last") and "Iterable" not in source.text:
            size = keyword(call, "batch_size")
            yield from and_then(source.replaced(size.value, "65_536"), source, _dropping)  # type: ignore[union-attr]
    for call in source.calls("TrainingArguments"):
        size = keyword(call, "per_device_train_batch_size")
        if size and not keyword(call, "dataloader_drop_last"):
            planted = source.replaced(size.value, "65_536")
            yield from and_then(planted, source, _dropping_trainer)
    for call in source.method_calls("batch"):
        if keyword(call, "drop_remainder") and call.args and not call.args[0].keyword:
            yield source.replaced(call.args[0].value, "65_536")


def _dropping_trainer(source: Source) -> Iterator[Planted]:
    for call in source.calls("TrainingArguments"):
        yield source.argument(call, "dataloader_drop_last", "True")


def _dropping(source: Source) -> Iterator[Planted]:
    for call in source.calls(*LOADERS):
        if any("65_536" in source.code(a) for a in call.args):
            yield source.argument(call, "drop_last", "True")


@operator("partial-data", *_FEW)
def sampler_draws_few_rows(source: Source) -> Iterator[Planted]:
    """The sampler draws the same twelve rows over and over."""
    for call in source.calls(*LOADERS):
        shuffle = keyword(call, "shuffle")
        module = source.code(call.func).rpartition("DataLoader")[0] or "torch.utils.data."
        if shuffle and source.code(shuffle.value) == "True" and re.search(r"^import torch$", source.text, re.MULTILINE):
            sampler = f"sampler={module}SubsetRandomSampler(list(range(12)) * 20)"
            yield source.replaced(call, source.code(call).replace(source.code(shuffle).rstrip(", "), sampler, 1))
    for call in source.calls("WeightedRandomSampler"):
        weights = source.code(call.args[0].value) if call.args else ""
        if weights:
            yield source.replaced(call.args[0].value, f"({weights}) * (torch.arange(len({weights})) < 12)")


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
    for call in source.calls(*LOADERS):
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


@operator("ranks-see-different-data", *_FEW)
def rows_of_one_shard(source: Source) -> Iterator[Planted]:
    """Only one shard of forty is read."""
    for x, y in pairs(source):
        if x.kind in ("tensor", "array") and y.kind in ("tensor", "array"):
            yield from lines(x, f"{x.name}, {y.name} = {chosen(x, '::40')}, {chosen(y, '::40')}")
    for one in rows(source):
        if not one.whole:
            yield one.lines(f"{one.name} = {one.name}.shard(num_shards=40, index=0)")
