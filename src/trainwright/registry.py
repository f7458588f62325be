"""All rules and questions: the folders `rules/` and `review/questions/` are the registry."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from trainwright.core import RULE_STAGES, Rule, Stage
from trainwright.core.quotations import fixed_length, flat, quoted_in
from trainwright.core.rule import RuleError


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules and questions, ordered by code.

    Raises:
        RuleError: if a code occurs twice, or `load_fact_rules` or `load_questions` raises it.
    """
    found: dict[str, Rule] = {}
    for one in (*load_fact_rules(), *load_questions()):
        if one.code in found:
            raise RuleError(f"{one.code} is both {found[one.code].name} and {one.name}.")
        found[one.code] = one
    return tuple(sorted(found.values(), key=lambda one: int(one.code[2:])))


@cache
def load_fact_rules() -> tuple[Rule, ...]:
    """The rules in `trainwright.rules`, which are asked of facts, ordered by code.

    Raises:
        RuleError: if a module declares no rule, or a rule is in another stage's folder.
    """
    return _load(*(f"trainwright.rules.{stage.label}" for stage in RULE_STAGES))


@cache
def load_questions() -> tuple[Rule, ...]:
    """The questions in `trainwright.review.questions`, which are asked of a record, ordered by code; raises as `load_fact_rules`."""
    return _load("trainwright.review.questions")


def _load(*folders: str) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for folder in folders:
        for info in pkgutil.iter_modules(importlib.import_module(folder).__path__, f"{folder}."):
            module = importlib.import_module(info.name)
            declared = [v for v in vars(module).values() if isinstance(v, Rule) and v.module == info.name]
            if not declared:
                raise RuleError(f"{info.name} declares no rule.")
            for one in declared:
                own = "review.questions" if one.stage == Stage.REHEARSAL else f"rules.{one.stage.label}"
                if folder != f"trainwright.{own}":
                    raise RuleError(f"{one.code} {one.name} must be in {own.replace('.', '/')}/")
            found += declared
    return tuple(sorted(found, key=lambda one: int(one.code[2:])))


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
