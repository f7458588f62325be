"""The verdict of a walk: what was shown of the training's learning, and by which numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainwright.core import WALKED, Failure, Finding, Severity, Shown, Stage, Verdict
from trainwright.core.verdict import FIXED
from trainwright.stages.learning import (
    CARRIED,
    NO_LOSS,
    SHOWN_DEVIATIONS,
    SHOWN_SHARE,
    TOO_FEW_ROWS,
    TWO_LOSSES,
    LearningFacts,
    LearningLook,
)
from trainwright.stages.setup import SetupFacts

if TYPE_CHECKING:
    from trainwright.walk.walk import Walk

# A larger budget is proposed up to this many seconds.
MOST_BUDGET = 3_600


def verdict_of(walk: Walk, unexplained: Sequence[Failure]) -> Verdict | None:
    """The verdict; None if no training was reached.

    Args:
        unexplained: exceptions of the pipeline that no finding explains.
    """
    errors = [f for f in walk.findings if f.severity == Severity.ERROR]
    if errors:
        return Verdict(shown=Shown.BROKEN, why=_of_errors(walk, errors))
    if unexplained:
        return Verdict(shown=Shown.BROKEN, why=f"it stops with {unexplained[0].type}")
    if SetupFacts not in walk.facts:
        return None
    learning = walk.facts.get(LearningFacts)
    found = next((f for f in walk.findings if _is_on_learning(f) and id(f) not in walk.fixed), None)
    if isinstance(learning, LearningFacts) and learning.shown:
        return Verdict(shown=Shown.LEARNS, why=f"{_after(learning)}{_weak(learning)}{_mended(walk)}")
    if found is not None:
        return Verdict(shown=Shown.DOES_NOT_LEARN, why=found.message)
    if not isinstance(learning, LearningFacts):
        why = _why_not_reached(walk)
        kept = (TWO_LOSSES, CARRIED, NO_LOSS)
        return Verdict(shown=Shown.CANNOT_BE_JUDGED if why in kept else Shown.NOT_SHOWN, why=why)
    if learning.unknown:
        few = learning.unknown == TOO_FEW_ROWS
        return Verdict(shown=Shown.NOT_SHOWN if few else Shown.CANNOT_BE_JUDGED, why=learning.unknown)
    return Verdict(shown=Shown.NOT_SHOWN, why=_not_shown(walk, learning))


def _of_errors(walk: Walk, errors: Sequence[Finding]) -> str:
    names = list(dict.fromkeys(f.name for f in errors))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    fixed = FIXED if all(id(f) in walk.fixed for f in errors) else ""
    return f"{names[0]}{more}{fixed}"


def _is_on_learning(finding: Finding) -> bool:
    return finding.severity == Severity.WARNING and finding.stage in (Stage.OVERFIT, Stage.BASELINE)


def _mended(walk: Walk) -> str:
    names = [f.name for f in walk.findings if id(f) in walk.fixed]
    return f"; with {', '.join(dict.fromkeys(names))} fixed in memory" if names else ""


def _after(learning: LearningFacts) -> str:
    """The last look in words."""
    last = learning.last
    assert last is not None
    planned = f" of {learning.planned:,} planned" if learning.planned else ""
    return (
        f"after {last.updates:,}{planned} updates, {learning.rows:,} {_rows(learning)} have a loss of {last.loss:.4g}, "
        f"a constant prediction {last.constant:.4g}{compared(last)}"
    )


def _weak(learning: LearningFacts) -> str:
    """How many of several losses are not below their constant."""
    last = learning.last
    weak = sum(share < SHOWN_SHARE for share in last.shares) if last is not None else 0
    if not weak or last is None:
        return ""
    return f"; {weak} of its {len(last.shares)} losses {'is' if weak == 1 else 'are'} not below a constant prediction's"


def _rows(learning: LearningFacts) -> str:
    return "evaluation rows" if learning.held_out == "evaluation" else "training rows that were held out"


def compared(look: LearningLook) -> str:
    """How far the last look is below the constant prediction, in words."""
    if look.share <= 0:
        return ""
    small = look.deviations > SHOWN_DEVIATIONS and look.share <= SHOWN_SHARE
    counts = f"; sure, but learning counts from {SHOWN_SHARE:.0%} less on" if small else ""
    share = f"{look.share:.1%}" if small else f"{look.share:.0%}"
    return f" ({share} less, {look.deviations:.1f} standard errors{counts})"


def _why_not_reached(walk: Walk) -> str:
    if walk.interrupted:
        return "the walk was interrupted"
    reasons = {**walk.blocked, **walk.skipped}
    stage = next((s for s in WALKED if s in reasons and s != Stage.EVALUATION), None)
    return reasons[stage] if stage is not None else "the walk did not get that far"


def _not_shown(walk: Walk, learning: LearningFacts) -> str:
    if learning.last is None:
        return learning.cut or "no update was made"
    told = _after(learning)
    if learning.looks[0].below and learning.last.below:
        return f"{told}; before its first update it had {learning.looks[0].loss:.4g}, from what was trained before"
    if learning.cut:
        return f"{told}; {learning.cut}"
    if learning.whole:
        trained = learning.trained
        if trained is not None and trained.below:
            return f"{told}; rows that it trained on have {trained.loss:.4g}"
        return f"{told}, and no more updates are planned{_side(learning)}"
    return (
        f"{told}; a larger --budget allows more updates{_side(learning)}" if walk.clock.budget < MOST_BUDGET else told
    )


def _side(learning: LearningFacts) -> str:
    return f"; {learning.side}" if learning.side else ""
