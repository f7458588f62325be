"""One walk in a process of its own: reads a request, and answers with the report and expressions for the script's values."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainwright.bundle.outline import first_rows, outline
from trainwright.bundle.values import expression
from trainwright.core.report import Report, combined, to_dict
from trainwright.errors import TrainwrightError
from trainwright.options import Options

# The first statement of a script whose values are wanted.
HAND_OVER = "__import__('trainwright.bundle.look', fromlist=['x']).names.append(globals())"
names: list[dict[str, Any]] = []
"""The names of the script that is looked at."""


def look(request: dict[str, Any]) -> dict[str, Any]:
    """Walk a script; its text may differ from the file's."""
    from trainwright.seams.scripts.edited_files import standing_in
    from trainwright.walk.run import check_script

    reports: list[Report] = []
    options = Options(budget=request["budget"], samples=False)
    if not request["trains"]:
        options = replace(options, updates=0)
    script = str(Path(request["script"]).resolve())
    with standing_in({script: request["text"]} if request["text"] else {}):
        try:
            check_script(script, request["arguments"], options, done=lambda report, further: reports.append(report))
        except TrainwrightError as error:
            return {"report": None, "values": {}, "why": str(error)}
    values: dict[str, dict[str, str]] = {}
    for name in request["names"]:
        if any(name in one for one in names):
            value = next(one[name] for one in names if name in one)
            found = {str(rows): made for rows in request["rows"] if (made := expression(value, rows))}
            if told := outline(value):
                found |= {"outline": told, "rows": first_rows(value)}
            if found:
                values[name] = found
    return {"report": to_dict(combined(reports)) if reports else None, "values": values}


if __name__ == "__main__":
    # The script's own modules are run under this name; the list of names is the imported module's.
    from trainwright.bundle import look as imported

    asked = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(imported.look(asked)), "utf-8")
