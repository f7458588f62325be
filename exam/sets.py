"""Where a program holds rows of Hugging Face data sets, and where it makes rows and batches itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m

from exam.roles import LABEL, NOT_DATA, is_evaluation, used_after, with_imports
from exam.source import Planted, Source


@dataclass(frozen=True)
class Rows:
    """A datasets.Dataset of the program: by itself, or as a member of a DatasetDict."""

    source: Source
    name: str  # data, or data["train"]
    columns: tuple[str, ...]
    evaluation: bool
    whole: bool  # of training and evaluation rows together
    statement: Any

    @property
    def label(self) -> str:
        """The label column; empty without one."""
        return next((c for c in self.columns if c in ("label", "labels", "ner_tags", "target", "targets")), "")

    @property
    def role(self) -> str:
        """What the label column holds: classes, numbers (regression), or several labels for each row."""
        text = self.source.text
        if re.search(r"ForTokenClassification|Seq2Seq|CausalLM|LMHead|ForMaskedLM|multi_label|-100|SFT|DPO", text):
            return "several"
        return "numbers" if re.search(r"num_labels=1\b|mse_loss|MSELoss|r2_score", text) else "classes"

    def mapped(self, **values: str) -> Planted:
        """With columns computed anew from `row`."""
        pairs = ", ".join(f'"{key}": {value}' for key, value in values.items())
        return self.lines(f"{self.name} = {self.name}.map(lambda row: {{{pairs}}})")

    def lines(self, text: str) -> Planted:
        """With lines behind its last assignment."""
        return self.source.after(self.statement, with_imports(self.source, text))


def rows(source: Source, evaluation: bool = False) -> Iterator[Rows]:
    """Sets of Hugging Face datasets: both parts together, and those of training (or of evaluation)."""
    for v in source.variables:
        if not used_after(source, v.name, v.statement):
            continue
        if v.kind == "rows" and is_evaluation(v.name) == evaluation:
            yield Rows(source, v.name, v.columns, evaluation, not re.search("train", v.name), v.statement)
        for part in v.sets if v.kind == "sets" else ():
            if is_evaluation(part) == evaluation:
                yield Rows(source, f'{v.name}["{part}"]', v.columns, evaluation, False, v.statement)
        if v.kind == "sets" and not evaluation:
            yield Rows(source, v.name, v.columns, False, True, v.statement)


def entries(source: Source, key: str) -> Iterator[cst.BaseExpression]:
    """The values under a key of the dictionaries that the program's functions return for rows or batches."""
    for element in source.find(m.DictElement(key=m.SimpleString())):
        function = source.inside(element, cst.FunctionDef)
        where = function.name.value if function else ""
        if element.key.evaluated_value == key and where not in ("", *NOT_DATA, "metrics"):
            yield element.value


def returned(source: Source) -> Iterator[tuple[cst.FunctionDef, str, list[cst.BaseExpression]]]:
    """What __getitem__ returns: the function, the name of its index, and the elements of the tuple or dictionary."""
    for function in source.functions("__getitem__"):
        if len(function.params.params) != 2:
            continue
        for line in m.findall(function, m.Return()):
            value = line.value
            if isinstance(value, cst.Tuple):
                yield function, function.params.params[1].name.value, [e.value for e in value.elements]
            if isinstance(value, cst.Dict):
                found = [e for e in value.elements if isinstance(e, cst.DictElement)]
                ordered = sorted(found, key=lambda e: bool(LABEL.search(source.code(e.key).strip("\"'"))))
                yield function, function.params.params[1].name.value, [e.value for e in ordered]
