"""All rules and questions: the folders `rules/` and `review/questions/` are the registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache

from trainwright.core import Rule, Stage
from trainwright.core.quotations import fixed_length, flat, quoted_in
from trainwright.core.rule import RuleError


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules in `trainwright.rules`, and the questions in `trainwright.review.questions`, ordered by code.

    Raises:
        RuleError: if a module declares no rule, a rule is in another stage's folder, or a code occurs twice.
    """
    found: dict[str, Rule] = {}
    for name in _modules():
        module = importlib.import_module(name)
        declared = [v for v in vars(module).values() if isinstance(v, Rule) and v.module == name]
        if not declared:
            raise RuleError(f"{name} declares no rule.")
        for one in declared:
            folder = "review.questions" if one.stage == Stage.REHEARSAL else f"rules.{one.stage.label}"
            if name.rpartition(".")[0] != f"trainwright.{folder}":
                raise RuleError(f"{one.code} {one.name} must be in {folder.replace('.', '/')}/")
            if one.code in found:
                raise RuleError(f"{one.code} is both {found[one.code].name} and {one.name}.")
            found[one.code] = one
    return tuple(sorted(found.values(), key=lambda one: int(one.code[2:])))


def _modules() -> Iterator[str]:
    """The modules that declare a rule."""
    for package in ("trainwright.rules", "trainwright.review.questions"):
        for info in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not info.ispkg and info.name.count(".") == 3:
                yield info.name


def knowing(text: str) -> list[Rule]:
    """Rules whose page quotes part of this error text, those with the longest quotation first."""
    return [rule for _, rule in quoting(text)]


def quoting(text: str) -> list[tuple[int, Rule]]:
    """Rules whose page quotes part of this text, with the number of fixed characters quoted, the highest first."""
    wanted = flat(text)
    found: dict[str, tuple[int, Rule]] = {}
    for quotation, rule in _quotations():
        if quoted_in(quotation, wanted):
            found[rule.code] = max(
                found.get(rule.code, (0, rule)), (fixed_length(quotation), rule), key=lambda one: one[0]
            )
    return sorted(found.values(), key=lambda one: -one[0])


@cache
def _quotations() -> tuple[tuple[str, Rule], ...]:
    return tuple((quotation, rule) for rule in load_rules() for quotation in rule.quotations)
