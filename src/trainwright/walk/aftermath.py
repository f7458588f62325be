"""What lies behind a repair: whether a stage that passed without it fails with it, or the training got worse."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isclose, isfinite

from trainwright.core import Facts, Failure, Finding, Severity, Stage
from trainwright.stages import BaselineFacts, LossFacts
from trainwright.stages.overfit import FIRST_SHARE, OverfitFacts

# A first loss up to this multiple of an uninformed model's surprises nobody; a repair may change it within that.
_UNSURPRISING = 3.0
# First losses that differ by less than this factor are alike.
_ALIKE = 1.5
# Two measurements of one fact with the same seed differ by rounding.
_SAME_WITHIN = 1e-2
_NUMBER = re.compile(r"[\d.,]+(e[+-]\d+)?")


class Aftermath:
    """The history of a walk, by the number of repairs that had been made at each point."""

    def __init__(self) -> None:
        self.version = 0
        self._made: dict[int, tuple[Finding, int]] = {}  # a finding that is held keeps its identity
        self._passed: dict[Stage, int] = {}
        self._failing: dict[Stage, int] = {}
        self._clean: dict[str, int] = {}
        self._found: list[tuple[Finding, int, int]] = []
        self._numbers: dict[type[Facts], list[tuple[int, Facts]]] = {}

    # What is seen

    def repaired(self, finding: Finding) -> None:
        """A finding's repair is in force from now on."""
        self.version += 1
        self._made[id(finding)] = finding, self.version

    def walked(self, stage: Stage, *, failed: bool) -> None:
        """A stage was measured."""
        if failed:
            self._failing[stage] = self.version
        else:
            self._failing.pop(stage, None)
            self._passed[stage] = self.version

    def measured(self, facts: Facts) -> None:
        """A stage gave these facts."""
        if isinstance(facts, (LossFacts, OverfitFacts, BaselineFacts)):
            self._numbers.setdefault(type(facts), []).append((self.version, facts))

    def judged_clean(self, code: str) -> None:
        """A rule looked at the facts and found nothing."""
        self._clean[code] = self.version

    def found(self, finding: Finding) -> None:
        """A rule found a fault that was not known."""
        self._found.append((finding, self._clean.get(finding.code, self.version), self.version))

    def repaired_since(self, finding: Finding) -> list[Finding]:
        """The findings whose repairs came into force after this one was found."""
        found = [since for other, _, since in self._found if alike(other, finding)]
        return [cause for cause, made in self._made.values() if found and made > found[-1]]

    # What it means

    def worse(self, finding: Finding, stands: Callable[[Finding], bool]) -> str:
        """What is worse since a finding's repair came into force, in a few words; empty if nothing is.

        Args:
            stands: whether a later finding is reported, and no repair has removed it.
        """
        if id(finding) not in self._made:
            return ""
        _, made = self._made[id(finding)]
        for stage, since in self._failing.items():
            if self._passed.get(stage, since) < made <= since:
                return f"the {stage.label} stage fails since"
        for other, clean, since in self._found:
            if other.severity == Severity.ERROR and clean < made <= since and stands(other):
                return f"{other.name} is found since"
        for history in self._numbers.values():
            without = [facts for version, facts in history if version < made]
            behind = [facts for version, facts in history if version >= made]
            if without and behind and all(_worse(without[-1], facts) for facts in behind):
                return f"the {behind[0].stage.label} stage has a worse loss since"
        return ""


def alike(left: Finding, right: Finding) -> bool:
    """Whether two findings say the same of the same line, apart from their numbers."""
    if (left.name, left.where) != (right.name, right.where):
        return False
    return _NUMBER.sub("", left.message) == _NUMBER.sub("", right.message)


def same_failure(one: Failure, other: Failure) -> bool:
    """Whether two stages met the same exception: its first line may count something, and say what was being done."""
    if one.type != other.type or bool(one.message.strip()) != bool(other.message.strip()):
        return False
    if not all(_NUMBER.sub("", failure.message).strip() for failure in (one, other)):  # a key, or a position
        return one.message == other.message
    short, long = sorted((_NUMBER.sub("", str(failure)) for failure in (one, other)), key=len)
    return long.startswith(short)


def same_fault(left: Finding, right: Finding) -> bool:
    """Whether two findings are one fault with the same numbers, measured twice."""
    if left.message == right.message:
        return left.name == right.name
    if not alike(left, right) or not left.measured or left.measured.keys() != right.measured.keys():
        return False
    return all(_same(left.measured[name], right.measured[name]) for name in left.measured)


def _same(left: object, right: object) -> bool:
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return isclose(left, right, rel_tol=_SAME_WITHIN)
    return left == right


def _worse(before: Facts, after: Facts) -> bool:
    """Whether the numbers after a repair are worse; False where the two cannot be compared."""
    if isinstance(before, LossFacts) and isinstance(after, LossFacts):
        return _first_loss_is_worse(before, after)
    if isinstance(before, OverfitFacts) and isinstance(after, OverfitFacts):
        if isfinite(before.losses[-1]) > isfinite(after.losses[-1]) or (before.learnt and after.unlearned):
            return True
        known = before.constant is not None and after.constant is not None
        return known and not after.learnt and after.share < before.share - FIRST_SHARE
    if isinstance(before, BaselineFacts) and isinstance(after, BaselineFacts):
        if before.constant is None or after.constant is None:
            return False
        return (
            before.last < before.constant and not after.last <= max(1.0, before.last / before.constant) * after.constant
        )
    return False


def _first_loss_is_worse(before: LossFacts, after: LossFacts) -> bool:
    """Losses of different units are compared by what an uninformed model would have in each."""
    if before.value is None or after.value is None:
        return False
    if isfinite(before.value) > isfinite(after.value):
        return True
    if not (before.expected and after.expected and before.expected > 0 and after.expected > 0):
        return False
    was, now = before.value / before.expected, after.value / after.expected
    return now > _UNSURPRISING and now > _ALIKE * was
