"""TW1011 best-not-kept: what is kept or restored is not what was best.

Why it matters: The worst checkpoint is deployed, or the last one, although a better one was seen: a monitor in the wrong
direction, a copy that is no copy, names that do not match.
Evidence: The script's own numbers of held-out rows, and the fingerprints of the weights that were kept, restored and left; or
weights from state_dict() that were trained on before they are restored, since they are the model's own.
Fix (manual): State the direction of the monitored number, copy the weights (copy.deepcopy), and restore them with strict=True.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trainwright.core import Finding, Fix, Place, Proof, Severity, rule
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.record_parts import Best
from trainwright.review.numbers import WORSE_SHARE, direction_of, held_out_series

# What is kept is worse by more of the range of the monitored number, of which so many values were seen.
MONITORED_SHARE, FEWEST_MONITORED = 0.1, 3
# Of the tensors, by a restore that finds no weights for them: a head of one's own is left out on purpose, not most.
UNTOUCHED_SHARE = 0.8


@rule("TW1011", Severity.WARNING)
def best_not_kept(record: Record) -> Iterator[Finding]:
    """A best epoch that is not the kept one, and restores that do not restore."""
    found = _monitored(record) or _untouched(record) or _worse(record) or _unchanged(record)
    if found is not None:
        yield found


def _monitored(record: Record) -> Finding | None:
    for best in record.best:
        direction = _direction(best)
        values = np.array(best.values, dtype=np.float64)
        if not direction or best.kept is None or len(values) < FEWEST_MONITORED or not np.isfinite(values).all():
            continue
        kept, ideal = float(values[best.kept]), float((values * direction).max() * direction)
        if abs(kept - ideal) > MONITORED_SHARE * float(np.ptp(values)):
            at = int((values * direction).argmax())
            return _finding(
                f"the weights that are kept as best are those of look {best.kept + 1} of {len(values)}, with {best.name} "
                f"{kept:.4g}; look {at + 1} had {ideal:.4g}",
                {"kept": kept, "best": ideal, "look": best.kept + 1},
                record.where,
                "the values that its callback saw, and the fingerprint of the weights at the end",
            )
    return None


def _direction(best: Best) -> int:
    """Which way is better: as the name says, otherwise as the callback was told."""
    told = 0 if best.higher_is_better is None else 1 if best.higher_is_better else -1
    return direction_of(best.name.lower()) or told


def _untouched(record: Record) -> Finding | None:
    for one in record.loaded:
        if one.update and one.tensors and one.missing >= UNTOUCHED_SHARE * one.tensors and one.before == one.after:
            return _finding(
                f"a restore after update {one.update:,} leaves the model as it was: {one.missing} of {one.tensors} tensors "
                "have no weights in what is loaded",
                {"missing": one.missing, "tensors": one.tensors, "update": one.update},
                one.where,
                "the names of the tensors, and the fingerprint before and after",
            )
    return None


def _worse(record: Record) -> Finding | None:
    """The weights left at the end, or kept under the name of the best, by the number that speaks best for them."""
    own = held_out_series(record)
    kept_at = {one.weights: one.update for one in reversed(record.kept)}
    end = max((s.updates[-1] for s in own), default=0)
    loaded = [one for one in record.loaded if one.update >= end and one.after in kept_at and one.before != one.after]
    restored = [(kept_at[one.after], one.where) for one in loaded]
    named = [(one.update, one.where) for one in record.kept if "best" in one.path.lower()]
    for update, where in (restored or named)[-1:]:
        found = [(s.regret_at(s.updates.index(update)), s) for s in own if update in s.updates]
        regret, series = min(found, key=lambda one: one[0], default=(0.0, None))
        if series is not None and regret > WORSE_SHARE:
            value = series.values[series.updates.index(update)]
            best = max(series.values, key=lambda one: one * series.direction)
            word = "restored at the end" if restored else "kept as best"
            return _finding(
                f"the weights {word} are those after update {update:,}, with {series.name} {value:.4g}; {best:.4g} was seen, "
                "and no other held-out number has its best there",
                {"kept": value, "best": best, "update": update},
                where,
                "the script's own numbers at that update, and the fingerprint of the weights",
            )
    return None


def _unchanged(record: Record) -> Finding | None:
    """A restore that finds the weights that are there: of what is no copy, or at the end of a training that went back."""
    for one in record.loaded:
        if one.taken is not None:
            return _finding(
                f"restoring the weights after update {one.update:,} changes none of them: what state_dict() gave after update "
                f"{one.taken:,} is no copy, and went on with the training",
                {"taken": one.taken, "update": one.update},
                one.taken_at or one.where,
                "the addresses of what was loaded and of the model's weights, which are the same",
            )
    own = held_out_series(record)
    end = max((s.updates[-1] for s in own), default=0)
    last = record.loaded[-1] if record.loaded else None
    if not own or last is None or last.update < end or last.before != last.after:
        return None
    if any(one.weights == last.after and one.update >= end for one in record.kept):
        return None  # the last weights were kept on purpose, and are read back
    regrets = [(s.regret_at(-1), s) for s in own]
    regret, series = min(regrets, key=lambda one: one[0])
    if regret <= WORSE_SHARE:
        return None
    best = max(series.values, key=lambda one: one * series.direction)
    return _finding(
        f"restoring the weights after update {last.update:,} changes none of them, although {series.name} was {best:.4g} and "
        f"is {series.values[-1]:.4g}",
        {"best": best, "last": series.values[-1], "update": last.update},
        last.where,
        "the fingerprint of the weights before and after it: what was kept went on with the training",
    )


def _finding(message: str, measured: dict[str, float | int | str], where: Place | None, fact: str) -> Finding:
    return Finding(
        message=message,
        measured=measured,
        where=where,
        proof=Proof(fact),
        fix=Fix(
            does="state the direction of the monitored number, copy the weights when they are best, restore them strictly"
        ),
    )
