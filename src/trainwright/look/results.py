"""What a record holds of a look at a training."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright.core import Facts, Outcome, Rule, Trial

# Trainings of a script that are looked at.
MOST_LOOKS = 4


@dataclass(frozen=True)
class LookResult:
    """What the close look at a training's first updates has measured."""

    training: int
    """Its number; 0: it made no update."""
    facts: dict[type[Facts], Facts]
    is_end: bool = False
    """Whether it is a look at the exception that ended the run, or at the step that raised it."""
    outcomes: dict[tuple[str, int], Outcome] = field(default_factory=dict)
    """Of the trials that rules asked for, by the rule's name and the trial's number."""
    untried: str = ""
    """What was not tried for lack of time, in a sentence."""
    repaired: tuple[str, ...] = ()
    """What the repairs do that have changed a call of the run."""

    def answer(self, rule: Rule, number: int, trial: Trial) -> Outcome:
        """The outcome of a rule's trial; of one that was not made behind the run, that it could not be made."""
        return self.outcomes.get((rule.name, number), trial.cut_off)
