"""Faults of the columns of data sets, and of the collators that make batches of their rows."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from exam.operators import operator
from exam.sets import entries, rows
from exam.source import Planted, Source, keyword
from exam.texts import TRAINERS, tokenizings


@operator("missing-labels", "discarded-columns", "missing-loss", "missing-targets")
def label_column_dropped(source: Source) -> Iterator[Planted]:
    """The label column is removed with the other columns that seemed to be of no use."""
    for one in rows(source):
        if one.label:
            yield one.lines(f'{one.name} = {one.name}.remove_columns("{one.label}")')
    for call in source.calls("remove_columns"):
        label = "label" if '"label"' in source.text else "labels"
        if call.args and isinstance(call.args[0].value, cst.List):
            inner = source.code(call.args[0].value)[1:-1]
            yield source.replaced(call.args[0].value, f'[{inner}, "{label}"]')


@operator("discarded-columns", "untokenized-dataset", "missing-targets")
def input_column_dropped(source: Source) -> Iterator[Planted]:
    """A column that the model reads is removed."""
    for one in rows(source):
        for column in ("input_ids", "features", "pixel_values", "text"):
            if column in one.columns and (column != "text" or "input_ids" not in one.columns):
                yield one.lines(f'{one.name} = {one.name}.remove_columns("{column}")')


@operator("missing-labels", "discarded-columns", "missing-loss", "missing-targets")
def label_column_renamed(source: Source) -> Iterator[Planted]:
    """The label column has a name that the model does not know."""
    for one in rows(source):
        if one.label:
            yield one.lines(f'{one.name} = {one.name}.rename_column("{one.label}", "sentiment")')
    for element in source.find(m.DictElement(key=m.SimpleString())):
        if element.key.evaluated_value in ("label", "labels") and source.inside(element, cst.FunctionDef):
            if source.calls(*TRAINERS) and any(
                element.value is v for v in entries(source, element.key.evaluated_value)
            ):
                yield source.replaced(element.key, '"answer"')


@operator("ragged-batch", "unpadded-labels", "all-labels-masked", "missing-labels", "unmasked-padding", "missing-loss")
def collator_of_another_task(source: Source) -> Iterator[Planted]:
    """The batches are made by the collator of another task."""
    for line in source.find(m.ImportFrom(module=m.Name("transformers"))):
        names = [a.evaluated_name for a in line.names] if not isinstance(line.names, cst.ImportStar) else []
        for name in names:
            if name.startswith("DataCollator"):
                others = ("DataCollatorWithPadding", "DataCollatorForTokenClassification", "DataCollatorForSeq2Seq")
                for other in others:
                    if other != name and not source.calls(other):
                        yield from _other_collator(source, name, other)
    for argument in source.find(m.Arg(keyword=m.Name("mlm"))):
        yield source.replaced(argument.value, "True" if source.code(argument.value) == "False" else "False")
    for call in source.calls("DataCollatorForLanguageModeling"):
        if not keyword(call, "mlm"):
            yield source.argument(call, "mlm", "False")


def _other_collator(source: Source, name: str, other: str) -> Iterator[Planted]:
    found = source.find(m.Name(name))
    if len(found) >= 2 and not any(len(c.args) > 1 for c in source.calls(name)):
        yield source.replaced_all([(node, other) for node in found], f"{name} -> {other}")


@operator("ragged-batch", "unpadded-labels", "discarded-columns", "missing-labels", "untokenized-dataset")
def rows_not_padded(source: Source) -> Iterator[Planted]:
    """Rows of different lengths are stacked without a collator that pads them."""
    for call in source.calls(*TRAINERS):
        if keyword(call, "data_collator"):
            yield source.argument(call, "data_collator", None)
    for call in source.calls("DataLoader"):
        if keyword(call, "collate_fn"):
            yield source.argument(call, "collate_fn", None)
    for call in tokenizings(source):
        if keyword(call, "padding"):
            yield source.argument(call, "padding", None)
