"""The report as JSON, schema 1."""

from __future__ import annotations

import json

from trainwright.core import Report
from trainwright.core.report import to_dict


def render(report: Report) -> str:
    """The report as indented JSON text; NaN and infinity are written as strings."""
    return json.dumps(to_dict(report), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
