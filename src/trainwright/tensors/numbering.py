"""Renumbering of values."""

from __future__ import annotations

from collections.abc import Mapping


def shifts(numbers: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Values and their new numbers, grouped into runs that shift equally: first value, last value, shift."""
    found: list[tuple[int, int, int]] = []
    for value in sorted(numbers):
        by = numbers[value] - value
        if found and found[-1][1] == value - 1 and found[-1][2] == by:
            found[-1] = (found[-1][0], value, by)
        else:
            found.append((value, value, by))
    return found
