"""What a rule is, and how the folder of rules becomes the table of rules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cache

from trainwright.core.finding import Finding, Severity
from trainwright.core.stage import Facts, Stage
from trainwright.core.trial import Outcome, Trial

Diagnosis = Generator[Trial | Finding, Outcome, None]
"""What a rule that experiments returns: it yields trials, is sent their outcomes, and yields findings."""

RuleFunction = Callable[..., Iterator[Finding] | Diagnosis]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One fault that can be named."""

    code: str
    name: str
    severity: Severity
    function: RuleFunction
    needs: tuple[type[Facts], ...]
    """The facts it cannot do without; it runs when the last of them is measured."""
    parameters: tuple[tuple[str, type[Facts], bool], ...]
    """Name, type and whether it is required, of each parameter."""
    module: str
    residual: bool = False
    """It speaks only when no other rule explains what is seen: nothing unmended was found before it."""
    raises: bool = True
    """The fault can make a later stage raise; False: whatever raises has another cause."""
    after: str = ""
    """The code of the rule that it is judged right after; empty: it is judged in the order of the codes."""

    @property
    def order(self) -> tuple[bool, str, str]:
        """Sorts the rules of a stage: residual ones last, a rule after the one that it follows."""
        return self.residual, self.after or self.code, self.code

    @property
    def stage(self) -> Stage:
        """The stage the fault belongs to: the hundred of the code."""
        return Stage(int(self.code[2:]) // 100)

    @property
    def runs_at(self) -> Stage:
        """The stage after which all it needs exists."""
        return max((kind.stage for _, kind, _ in self.parameters), default=self.stage)

    def severity_of(self, finding: Finding) -> Severity:
        """The rule's severity, or the finding's own where that is milder."""
        order = (Severity.NOTE, Severity.WARNING, Severity.ERROR)
        return min(self.severity, finding.severity, key=order.index)

    @property
    def title(self) -> str:
        """What is wrong, in a line."""
        first = (inspect.getdoc(importlib.import_module(self.module)) or "").split("\n")[0]
        return first.split(": ", 1)[-1].rstrip(".")

    @property
    def page(self) -> str:
        """Its documentation: the docstring of its module."""
        return inspect.getdoc(importlib.import_module(self.module)) or ""


class RuleError(TypeError):
    """A rule that is not written as a rule must be."""


def rule(
    code: str, severity: Severity, *, residual: bool = False, raises: bool = True, after: str = ""
) -> Callable[[RuleFunction], Rule]:
    """Declare a function to be a rule; its parameters' types say which facts it needs.

    A parameter annotated `Facts | None` may be missing: the rule then runs without it, once that stage is over.

    Args:
        residual: speak only when no other rule explains what is seen.
        raises: the fault can make a later stage raise.
        after: the code of the rule that it is judged right after: one for a fault that the same facts show.

    Raises:
        RuleError: if a parameter is not annotated with a Facts class (or `Facts | None`).
    """

    def declare(function: RuleFunction) -> Rule:
        where = f"{function.__module__}.{function.__name__}"
        if not re.fullmatch(r"TW\d{3}", code):
            raise RuleError(f"{where}: a code is TW and three digits; got {code!r}.")
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
            raise RuleError(
                f"{where}: parameter {name!r} must be annotated with a Facts class; got {kind!r}."
            )
        yield name, kind, required


@cache
def load_rules() -> tuple[Rule, ...]:
    """Every rule below `trainwright.rules`, by code. The folder is the registry.

    Raises:
        RuleError: if a module declares none or several, is not named like its rule, or a code occurs twice.
    """
    package = importlib.import_module("trainwright.rules")
    found: dict[str, Rule] = {}
    for info in pkgutil.walk_packages(package.__path__, "trainwright.rules."):
        if info.ispkg or info.name.count(".") < 3:
            continue
        module = importlib.import_module(info.name)
        declared = [v for v in vars(module).values() if isinstance(v, Rule) and v.module == info.name]
        if len(declared) != 1:
            raise RuleError(f"{info.name} must declare one rule; it declares {len(declared)}.")
        one = declared[0]
        folder, file = info.name.split(".")[-2:]
        if file != one.name.replace("-", "_") or folder != one.stage.label:
            raise RuleError(
                f"{one.code} {one.name} must be rules/{one.stage.label}/{one.name.replace('-', '_')}.py"
            )
        if one.code in found:
            raise RuleError(f"{one.code} is both {found[one.code].name} and {one.name}.")
        found[one.code] = one
    return tuple(found[code] for code in sorted(found))


def knowing(text: str) -> list[Rule]:
    """Rules whose page quotes a part of this error text; what a page quotes stands in backticks after "Error:",
    on a line of its own.

    In a quotation `…` stands for anything within a line. Backticks within it do not matter: a shell takes them out.
    """
    found, wanted = [], " ".join(text.replace("`", "").split())
    for rule in load_rules():
        for quoted in re.findall(r"^Error: `(.+)`$", rule.page, re.MULTILINE):
            pattern = ".*?".join(re.escape(part) for part in quoted.replace("`", "").split("…"))
            if re.search(pattern, wanted):
                found.append(rule)
                break
    return found
