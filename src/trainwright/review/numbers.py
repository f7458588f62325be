"""The numbers that a script reports about itself: by name, in order, and which way is better."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from trainwright.rehearsal.record import Record, Training
from trainwright.review.sweeps import span_of

# Names that say which way is better; losses and errors first, as in "loss_score".
_LOWER = re.compile(
    r"loss|mse|mae|rmse|\berr|error|perplexity|\bppl|nll|\bbpc|\bcer\b|\bwer\b|crps|mape|pinball|deviance|bits"
)
_HIGHER = re.compile(
    r"acc|f1|auc|auroc|\br ?2\b|r squared|bleu|rouge|precision|recall|\bcorr|iou|dice|\bmap\b|\bhit|\bhr\b|ndcg|mrr|exact|"
    r"correct|kappa|matthews|spearman|pearson|concordance"
)
_HELD_OUT = re.compile(r"\bval(?:id(?:ation)?)?\b|\btest|\beval|\bdev\b|held|unseen|holdout|\boos\b")
_TRAINING = re.compile(r"train|fit")
_SETS_ALONE = re.compile(r"(?:(?:val|valid|validation|test|eval|dev|train|training) ?)+")
# Not this training's own: of another model, of its beginning, or the best of others.
_OTHERS = re.compile(
    r"best|first|start|init|before|untrained|random|baseline|chance|major|teacher|\bema\b|adv|robust|max|min|mean|avg|std|"
    r"naive|dummy|constant"
)
_ACCURACY = re.compile(r"acc")
_R2 = re.compile(r"\br ?2\b|r squared")
_OTHER_ACCURACY = re.compile(r"balanced|top|exact|seq|per class|accum|accel|macro|sentence|line|joint")
# Numbers of these sources are values; printed ones are read from text, in which "± 0.04" looks like a score.
TYPED = frozenset({"logged", "history", "returned"})
# What is kept is worse than the best, by more of the range of a number of which so many values are known.
WORSE_SHARE, FEWEST_VALUES = 0.15, 4


@dataclass(frozen=True, kw_only=True)
class Series:
    """The values of one name, one for each update at which it was reported."""

    name: str
    updates: tuple[int, ...]
    values: tuple[float, ...]
    is_typed: bool
    is_ambiguous: bool
    """Whether an update has several values of it: two sets, or two models, under one name."""

    @property
    def words(self) -> str:
        """The name in words: what joins them is a space."""
        return words_of(self.name)

    @property
    def direction(self) -> int:
        """1: higher is better; -1: lower is; 0: not known."""
        return direction_of(self.name)

    @property
    def is_held_out(self) -> bool:
        """Whether the name says that it is of rows that were kept out."""
        return bool(_HELD_OUT.search(self.words)) and not _TRAINING.search(self.words)

    @property
    def is_of_training(self) -> bool:
        """Whether the name says that it is of training rows."""
        return bool(_TRAINING.search(self.words))

    @property
    def is_named(self) -> bool:
        """Whether the name says what is measured; words before a printed number are any words of a text."""
        return self.is_typed or bool(self.direction) or _SETS_ALONE.fullmatch(self.words) is not None

    @property
    def is_own(self) -> bool:
        """Whether it is of the model at that moment."""
        return not _OTHERS.search(self.words)

    @property
    def is_accuracy(self) -> bool:
        """Whether it is the share of rows that are right."""
        return bool(_ACCURACY.search(self.words)) and not _OTHER_ACCURACY.search(self.words)

    @property
    def is_r2(self) -> bool:
        """Whether it is the coefficient of determination, which is 0 for the mean of the targets."""
        return self.direction > 0 and bool(_R2.search(self.words))

    def regret_at(self, index: int) -> float:
        """By which share of its range it is worse there than at its best."""
        values = np.array(self.values) * self.direction
        return float((values.max() - values[index]) / max(float(np.ptp(values)), 1e-300))

    @property
    def told(self) -> str:
        """First and last value in words."""
        if len(self.values) < 2:
            return f"its own {self.name} is {self.values[-1]:.4g}"
        return f"its own {self.name} went from {self.values[0]:.4g} to {self.values[-1]:.4g}"


def words_of(name: str) -> str:
    """A name in words: `val_r2` is "val r2"."""
    return re.sub(r"[_/.:-]+", " ", name.lower())


def direction_of(name: str) -> int:
    """1: higher is better; -1: lower is; 0: not known by the name."""
    words = words_of(name)
    return -1 if _LOWER.search(words) else 1 if _HIGHER.search(words) else 0


def series_of(record: Record, since: int = 0, until: float = math.inf) -> list[Series]:
    """The numbers of each name that were reported behind one update, to another; names that are typed before those that are
    printed."""
    found: dict[tuple[str, bool], dict[int, list[float]]] = {}
    for one in record.numbers:
        if since < one.update <= until or since == 0 == one.update:
            key = one.name, one.source in TYPED
            found.setdefault(key, {}).setdefault(one.update, []).append(one.value)
    every = [
        Series(
            name=name,
            updates=tuple(values),
            values=tuple(of_update[-1] for of_update in values.values()),
            is_typed=typed,
            is_ambiguous=any(len(set(of_update)) > 1 for of_update in values.values()),
        )
        for (name, typed), values in found.items()
    ]
    return sorted(every, key=lambda one: not one.is_typed)


def series_of_training(record: Record, training: Training | None) -> list[Series]:
    """The numbers that were reported in a training or behind it, before the next one."""
    return series_of(record, *span_of(record, training)) if training is not None else series_of(record)


def held_out_series(record: Record) -> list[Series]:
    """The script's own numbers of held-out rows in its last training, where they say which way is better."""
    since = record.trainings[-1].begins + 1 if record.trainings else 0
    every = [s for s in series_of(record, since) if s.direction and s.is_held_out and s.is_own and not s.is_ambiguous]
    return [
        s for s in every if len(s.values) >= FEWEST_VALUES and len(set(s.values)) > 2 and np.isfinite(s.values).all()
    ]


def own_score(record: Record, training: Training | None = None) -> Series | None:
    """The script's own number that says the most: held out, a score before a loss before what has no known direction,
    logged before printed."""
    held_out = [one for one in series_of_training(record, training) if one.is_held_out and one.is_own and one.is_named]
    known = [one for one in held_out if one.direction or len(set(one.values)) > 1]
    return min(
        known, key=lambda one: (not one.direction, not one.is_typed, -one.direction, -len(one.values)), default=None
    )
