"""Rules: their declaration."""

from __future__ import annotations

import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from trainwright.core.finding import Finding, Severity
from trainwright.core.stage import Facts, Stage
from trainwright.core.trial import Outcome, Trial

Diagnosis = Generator[Trial | Finding, Outcome, None]
"""The return type of a rule with experiments: it yields trials, is sent their outcomes, and yields findings."""

RuleFunction = Callable[..., Iterator[Finding] | Diagnosis | Generator[typing.Any, typing.Any, None]]


class Fate(StrEnum):
    """What a fault foretells of the training: a run that was seen to do otherwise refutes it."""

    STOPS = "stops"
    """The script ends with an exception: at its first batches, or in its evaluation."""
    STANDS_STILL = "stands still"
    """Weights that the optimizer holds get no gradient, or do not move."""
    LEARNS_NOTHING = "learns nothing"
    UNTRAINED = "untrained"
    """Frozen weights were never trained."""
    SPOILS_THE_PLAN = "spoils the plan"
    """Something does not fit the number of updates."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One fault that can be diagnosed."""

    code: str
    name: str
    severity: Severity
    function: RuleFunction
    needs: tuple[type[Facts], ...]
    """The facts it requires; it runs once the last of them is measured."""
    parameters: tuple[tuple[str, type[Facts], bool], ...]
    """Name, type and whether it is required, for each parameter."""
    module: str
    residual: bool = False
    """It runs only if no other rule explains the symptoms, so if there is no unrepaired finding before it."""
    raises: bool = True
    """The fault can make a later stage raise an error; False: any such error has another cause."""
    foretells: Fate | None = None
    """None: nothing that a run could refute."""
    after: str = ""
    """The code of the rule that this one runs right after; empty: rules run in the order of their codes."""

    @property
    def order(self) -> tuple[bool, str, str]:
        """Sort key within a stage: residual rules last, a rule right after the one that it follows."""
        return self.residual, self.after or self.code, self.code

    @property
    def stage(self) -> Stage:
        """The stage that the fault belongs to: the hundreds of its code."""
        return Stage(int(self.code[2:]) // 100)

    @property
    def runs_at(self) -> Stage:
        """The stage after which all its facts exist."""
        return max((kind.stage for _, kind, _ in self.parameters), default=self.stage)

    def severity_of(self, finding: Finding) -> Severity:
        """The rule's severity, or the finding's own if that is milder."""
        order = (Severity.NOTE, Severity.WARNING, Severity.ERROR)
        return min(self.severity, finding.severity, key=order.index)

    @property
    def title(self) -> str:
        """What is wrong, in one line."""
        first = " ".join(self.page.split("\n\n", 1)[0].split())
        return first.split(": ", 1)[-1].rstrip(".")

    @property
    def page(self) -> str:
        """The rule's documentation: its part of the folder's pages.md, or else the docstring of its module."""
        module = importlib.import_module(self.module)
        pages = _read_pages(Path(module.__file__ or "").with_name("pages.md"))
        return pages.get(self.code) or inspect.getdoc(module) or ""

    @property
    def markdown(self) -> str:
        """Its page as Markdown, with each part as a separate paragraph."""
        parted = re.sub(r"\n(?=(Why it matters|Evidence|Error|Fix)\b)", "\n\n", self.page)
        return parted.replace("\n\n\n", "\n\n")

    @property
    def quotations(self) -> tuple[str, ...]:
        """The error messages that its page quotes: lines "Error: `…`"."""
        return tuple(re.findall(r"^Error: `(.+)`$", self.page, re.MULTILINE))


class RuleError(TypeError):
    """A rule that is not declared correctly."""


def rule(
    code: str,
    severity: Severity,
    *,
    residual: bool = False,
    raises: bool = True,
    foretells: Fate | None = None,
    after: str = "",
) -> Callable[[RuleFunction], Rule]:
    """Declare a function as a rule; its parameters' types say which facts it needs.

    A parameter annotated `Facts | None` may be missing: the rule then runs without it, once that stage is over.

    Args:
        residual: run only if no other rule explains the symptoms.
        raises: the fault can make a later stage raise an error.
        foretells: what becomes of the training, unless the run is seen to do otherwise.
        after: the code of the rule that this one runs right after, because the same facts show both faults.

    Raises:
        RuleError: if a parameter is not annotated with a Facts class (or `Facts | None`).
    """

    def declare(function: RuleFunction) -> Rule:
        where = f"{function.__module__}.{function.__name__}"
        if not re.fullmatch(r"TW\d{3,4}", code):
            raise RuleError(f"{where}: a code is TW and three or four digits; got {code!r}.")
        parameters = tuple(_parameters(function, where))
        return Rule(
            code=code,
            name=function.__name__.replace("_", "-"),
            severity=severity,
            function=function,
            needs=tuple(kind for _, kind, required in parameters if required),
            parameters=parameters,
            module=function.__module__,
            residual=residual,
            raises=raises,
            foretells=foretells,
            after=after,
        )

    return declare


def _parameters(function: RuleFunction, where: str) -> Iterator[tuple[str, type[Facts], bool]]:
    hints = typing.get_type_hints(function)
    for name in inspect.signature(function).parameters:
        kind, required = hints.get(name), True
        if isinstance(kind, types.UnionType) and type(None) in kind.__args__:
            kind, required = next(a for a in kind.__args__ if a is not type(None)), False
        if not (isinstance(kind, type) and issubclass(kind, Facts)):
            raise RuleError(f"{where}: parameter {name!r} must be annotated with a Facts class; got {kind!r}.")
        yield name, kind, required


@cache
def _read_pages(file: Path) -> dict[str, str]:
    """The pages in a file, by their rules' codes: each is a heading "## TW101 name: title." with its text."""
    text = file.read_text("utf-8") if file.exists() else ""
    return {page.split(" ", 1)[0]: page.strip() for page in re.split(r"^## ", text, flags=re.MULTILINE) if page}
