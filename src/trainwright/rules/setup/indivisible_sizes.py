"""TW009 indivisible-sizes: a layer or model is built with a size that another of its arguments does not divide.

Why it matters: Groups of channels and attention heads share a size equally, so the constructor raises. Its message
often lacks the numbers.
Evidence: Both numbers, from the arguments of the call that raised, and the remainder of their division.
Error: `must be divisible by groups`
Error: `must be divisible by num_heads`
Error: `must be divisible by num_groups`
Error: `The hidden size (…) is not a multiple of the number of attention heads (…)`
Error: `must be divisible by `num_heads``
Error: `The number of filters must be evenly divisible by the number of groups`
Fix (manual): Choose a size that is a multiple of the number of groups or heads, or another number of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Severity, rule
from trainwright.stages import Indivisible, SetupFacts


@rule("TW009", Severity.ERROR, foretells=Fate.STOPS)
def indivisible_sizes(setup: SetupFacts) -> Iterator[Finding]:
    """Two sizes of which the second does not divide the first."""
    found = setup.indivisible
    if found is None or setup.failure is None:
        return
    size, divisor = found.size, found.divisor
    yield Finding(
        message=f"{found.whole}={size} is not divisible by {found.part}={divisor}",
        measured={found.whole: size, found.part: divisor},
        where=setup.failure.where,
        proof=Proof(f"{size} divided by {divisor} leaves {size % divisor}"),
        fix=Fix(does=_fitting(found)),
    )


def _fitting(found: Indivisible) -> str:
    """The nearest sizes and divisors that fit."""
    below = found.size // found.divisor * found.divisor
    sizes = [n for n in (below, below + found.divisor) if n]
    divisors = [n for n in range(1, found.size + 1) if found.size % n == 0]
    smaller = max((n for n in divisors if n < found.divisor), default=None)
    larger = min((n for n in divisors if n > found.divisor), default=None)
    numbers = [n for n in (smaller, larger) if n is not None]
    return f"use {found.whole}={_either(sizes)}, or {found.part}={_either(numbers)}"


def _either(numbers: list[int]) -> str:
    return " or ".join(map(str, numbers))
