"""What a page leaves out of a report, so that its file stays small enough to be sent."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from trainwright.core import Report

# Of a page with all that is in it.
MOST_BYTES = 300_000
# The longest list of a page, and how many single rows it has, whose pictures are large; where the page is too large, the next
# ones. The least are small with whatever is in a report.
LENGTHS = ((80, 80), (80, 12), (80, 6), (40, 6), (20, 6), (10, 4), (5, 3), (2, 2))
# Characters of a text for each entry of the longest list, and what every text has.
CHARACTERS, LEAST_CHARACTERS = 200, 1_000
# The lists of a report and of its sheet that are shortened here; tables are where they are shown.
OF_REPORT = ("findings", "profile", "warnings", "kept_away", "internal_errors")
OF_SHEET = ("curves", "confused", "generated")


def shorten(report: Report, most: int, most_rows: int) -> tuple[Report, str]:
    """The report with lists so long, and what was left out of them, counted; of single rows, some of each set are left."""
    cut: list[str] = []

    def begin(holder: Any, names: tuple[str, ...]) -> Any:
        lists = {name: held for name in names if holder and len(held := getattr(holder, name)) > most}
        cut.extend(f"{len(held) - most:,} of {len(held):,} {name.replace('_', ' ')}" for name, held in lists.items())
        return replace(holder, **{name: held[:most] for name, held in lists.items()}) if lists else holder

    if report.sheet is not None and (count := len(report.sheet.samples)) > most_rows:
        left = report.sheet.samples[:: math.ceil(count / most_rows)]
        cut.append(f"{count - len(left):,} of {count:,} single rows")
        report = replace(report, sheet=replace(report.sheet, samples=left))
    sheet, failure = begin(report.sheet, OF_SHEET), begin(report.failure, ("trace",))
    return replace(begin(report, OF_REPORT), sheet=sheet, failure=failure), ", ".join(cut)


def begin_of(value: Any, most: int) -> Any:
    """A text's beginning, as a page shows it; a picture and our own markup are whole."""
    room = max(CHARACTERS * most, LEAST_CHARACTERS)
    is_text = isinstance(value, str) and not isinstance(value, Markup) and not value.startswith("data:image/")
    return f"{value[:room]} … (cut: {len(value):,} characters)" if is_text and len(value) > room else value
