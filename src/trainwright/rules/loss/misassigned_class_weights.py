"""The weights of the classes, in the loss or in the sampler, belong to other classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import log, sqrt

import numpy as np

from trainwright.core import Call, Finding, Place, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import unsafe
from trainwright.stages import DatasetFacts, LabelFacts, LossCall, LossFacts, SetupFacts

# Weights made from counts of all rows differ from those of the training rows by some hundredths, of rare classes by more.
WITHIN = log(1.15)
# Weights that differ less from those of the other order may be the same by chance.
APART = log(1.5)
# Weights that favor the frequent class by less may be chosen.
FAR = 3.0
# The usual ways from a share to a weight: its inverse, the root of that, and the share of the other classes.
USUAL: tuple[Callable[[float], float], ...] = (lambda p: 1 / p, lambda p: 1 / sqrt(p), lambda p: 1 - p)


@rule("TW461", Severity.WARNING, raises=False)
def misassigned_class_weights(loss: LossFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Weights of classes, in the loss or in the sampler, that fit the counts of the classes backwards or in another order."""
    call, labels = loss.call, dataset.train.labels
    if call is None or labels is None:
        return
    counts = _counts(labels, call)
    place = setup.place(Role.CLASS_WEIGHT) or call.made_at or call.at
    place = place or setup.place(Role.LOSS, Role.COMPUTE_LOSS, Role.TRAINER)
    yield from _judged("class weights", call.class_weights, counts, place, call)
    yield from _judged("sampler's weights", dataset.sampler_weights, counts, setup.place(Role.SAMPLER, Role.LOADER))


def _judged(
    what: str,
    given: Mapping[int, float],
    counts: Mapping[int, float],
    where: Place | None,
    call: LossCall | None = None,
) -> Iterator[Finding]:
    """The finding on the weights of classes.

    Args:
        call: the loss call that they are given to, if they are.
    """
    classes = sorted(counts)
    if len(classes) < 2 or set(classes) != set(given) or min(counts.values()) == 0 or min(given.values()) <= 0:
        return
    weights, shares = [given[c] for c in classes], [counts[c] / sum(counts.values()) for c in classes]
    proven = _misassigned(weights, shares)
    how = proven or _backwards(weights, shares)
    if how is None:
        return
    rare, frequent = min(counts, key=lambda c: counts[c]), max(counts, key=lambda c: counts[c])
    right = [1 / (len(classes) * share) for share in shares]
    yield Finding(
        severity=Severity.WARNING if proven else Severity.NOTE,
        message=f"the {what} are {how}: class {frequent} has {counts[frequent]:,} rows and the weight "
        f"{given[frequent]:.3g}, class {rare} has {counts[rare]:,} rows and the weight {given[rare]:.3g}",
        measured={"rows": sum(counts.values()), "classes": len(classes), "weight_of_rarest": given[rare]},
        where=where,
        proof=Proof(
            f"the weights of all {len(classes)} classes agree with such weights within {np.expm1(WITHIN):.0%}, and "
            "differ from those by inverse counts"
        )
        if proven
        else None,
        repair=_weigh(call, classes, right) if proven and call is not None and not call.own_name else None,
        fix=unsafe(_advice(call, right)),
    )


def _counts(labels: LabelFacts, call: LossCall) -> dict[int, float]:
    """The number of rows of each class; empty if the labels are no classes."""
    if labels.kind == "class":
        return {int(v): n for v, n in labels.census.items() if not isinstance(v, str)}
    if labels.kind == "real" and set(call.target_values) == {0.0, 1.0} and labels.mean is not None:
        ones = round(labels.mean * labels.counted)
        return {0: labels.counted - ones, 1: ones}
    return {}


def _misassigned(weights: list[float], shares: list[float]) -> str | None:
    """What the weights are proportional to, if it is not what they should be; None if they may be right."""
    if any(_agree(weights, [usual(p) for p in shares], APART) for usual in USUAL):
        return None
    if max(shares) / min(shares) >= np.exp(APART) and _agree(weights, shares, WITHIN):
        return "proportional to the counts of the classes instead of their inverse"
    for usual in USUAL:
        expected = [usual(p) for p in shares]
        if max(expected) / min(expected) >= np.exp(APART) and _agree(sorted(weights), sorted(expected), WITHIN):
            return "those by inverse counts, but of the classes in another order"
    return None


def _backwards(weights: list[float], shares: list[float]) -> str | None:
    """Whether the more rows a class has, the larger its weight; that may be meant, of two classes for precision."""
    order = sorted(range(len(shares)), key=lambda i: shares[i])
    rising = all(weights[a] < weights[b] for a, b in pairwise(order))
    far = weights[order[-1]] >= FAR * weights[order[0]] and shares[order[-1]] >= FAR * shares[order[0]]
    return "larger, the more rows a class has" if rising and far else None


def _agree(weights: list[float], others: list[float], within: float) -> bool:
    """Whether weights are others times a single number."""
    ratios = [log(w / o) for w, o in zip(weights, others)]
    return max(ratios) - min(ratios) <= within


def _weigh(call: LossCall, classes: list[int], right: list[float]) -> Repair | None:
    """Give the loss the inverse counts."""
    if call.function in ("cross_entropy", "nll_loss"):
        if classes != list(range(len(classes))):
            return None
        name, values = "weight", np.asarray(right, dtype=np.float32)
    else:
        name, values = "pos_weight", np.asarray(right[1] / right[0], dtype=np.float32)

    def change(one: Call) -> Call:
        if one["function"] != call.function or one.given.get(name) is None:
            return one
        return one.replace(**{name: one.tensors.like(values, one["logits"])})

    return Repair(f"give each class the inverse of its count as {name}", Seam.LOSS, change)


def _advice(call: LossCall | None, right: list[float]) -> str:
    if call is not None and call.function == "binary_cross_entropy_with_logits" and not call.own_name:
        return f"set pos_weight to negatives / positives: {right[1] / right[0]:.3g}"
    shown = ", ".join(f"{w:.3g}" for w in right[:10]) + (", …" if len(right) > 10 else "")
    return f"give each class rows / (classes x count), in the order of the class numbers: {shown}"
