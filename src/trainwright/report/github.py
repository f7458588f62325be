"""The report as GitHub's workflow commands: each finding is an annotation of its line."""

from __future__ import annotations

from trainwright.core import Place, Report
from trainwright.report import words
from trainwright.report.source import path_in_repository

_IN_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = {**_IN_TEXT, ord(":"): "%3A", ord(","): "%2C"}


def render(report: Report, status: int) -> str:
    """The report of a check with this exit status: the first cause first, as GitHub shows ten of a kind."""
    found = [_command(str(f.severity), f"{f.code} {f.name}", words.whole(f), f.where) for f in words.ordered(report)]
    head = f"trainwright {report.script}"
    return "".join([*found, *(_command(level, head, text) for level, text in words.notes(report, status))])


def _command(level: str, title: str, text: str, place: Place | None = None) -> str:
    shown, properties = place.in_cell() if place is not None else None, {"title": title}
    if shown is not None:
        properties["file"] = path_in_repository(shown.file)
        if shown.cell is None:
            properties["line"] = str(shown.line)
        else:  # whose lines are no lines of the notebook's file
            text = f"{shown}: {text}"
    told = ",".join(f"{name}={value.translate(_IN_PROPERTY)}" for name, value in sorted(properties.items()))
    return f"::{'notice' if level == 'note' else level} {told}::{text.translate(_IN_TEXT)}\n"
