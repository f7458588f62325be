"""A script's values where its training begins, from a process of its own: reads a request, and answers with the values as
expressions, and in outline (class, shape, type and range, without the numbers)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from trainwright.bundle.values import expression
from trainwright.errors import ScriptLeft

# The first statement of a script whose values are wanted.
HAND_OVER = "__import__('trainwright.bundle.look', fromlist=['x']).names.append(globals())"
names: list[dict[str, Any]] = []
"""The names of the script that is looked at."""
# First rows that are shown on request, and the length of such a text.
_ROWS, _LONGEST = 3, 300
# Of a set, so many rows are looked at.
_LOOKED_AT = 64


def look(request: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Run a script up to its training; its text may differ from the file's."""
    from trainwright.rehearsal.ranks import RankListening
    from trainwright.seams.intercept import install
    from trainwright.seams.isolation.harmless_run import aside
    from trainwright.seams.isolation.offline import offline
    from trainwright.seams.isolation.tally import KeptAway
    from trainwright.seams.listening.seen import told as telling
    from trainwright.seams.scripts.edited_files import standing_in
    from trainwright.seams.scripts.running import starting

    script, tally = str(Path(request["script"]).resolve()), KeptAway()
    install()
    with (
        standing_in({script: request["text"]} if request["text"] else {}),
        tempfile.TemporaryDirectory(prefix="trainwright-") as written,
        aside(tally, Path(written)),
        offline(tally),
        starting(script, request["arguments"], module=False) as start,
        contextlib.suppress(Exception, SystemExit, ScriptLeft),  # the script's own end: its values are what is wanted
        telling(RankListening(os.getppid())),
    ):
        start()
    values: dict[str, dict[str, str]] = {}
    for name in request["names"]:
        if any(name in one for one in names):
            value = next(one[name] for one in names if name in one)
            found = {"made": made} if (made := expression(value)) else {}
            if told := outline(value):
                found |= {"outline": told, "rows": first_rows(value)}
            if found:
                values[name] = found
    return values


if __name__ == "__main__":
    # The script's own modules are run under this name; the list of names is the imported module's.
    from trainwright.bundle import look as imported

    asked = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(imported.look(asked)), "utf-8")


def outline(value: Any) -> str:
    """What a value is, in a few words; empty if it is no data."""
    with contextlib.suppress(Exception):  # the user's and the libraries' own: a value that cannot be read is left out
        return _outline(value)
    return ""


def first_rows(value: Any) -> str:
    """The outline, and the value's first rows."""
    with contextlib.suppress(Exception):  # as above
        rows = [
            value.iloc[i].to_dict() if hasattr(value, "iloc") and hasattr(value, "columns") else value[i]
            for i in range(min(_ROWS, len(value)))
        ]
        return f"{_outline(value)}; begins {' '.join(repr(rows).split())[:_LONGEST]}"
    return outline(value)


def _outline(value: Any) -> str:
    name = type(value).__name__
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return (
            f"{name} {tuple(value.shape)} {str(value.dtype).rpartition('.')[2]}{_range(value.float().numpy())}"
            if value.ndim
            else ""
        )
    if isinstance(value, np.ndarray):
        return f"{name} {value.shape} {value.dtype}{_range(value)}" if value.ndim else ""
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        return f"{name} of {len(value)} rows: " + ", ".join(
            f"{k} {value[k].dtype}{_range(value[k].to_numpy())}" for k in value.columns
        )
    if hasattr(value, "features") and hasattr(value, "with_format"):
        return f"{name} of {len(value)} rows: " + ", ".join(f"{k} {v}" for k, v in value.features.items())
    if isinstance(value, str | dict) or not hasattr(value, "__getitem__") or not hasattr(value, "__len__"):
        return ""
    if hasattr(value, "parameters"):
        return ""
    return f"{name} of {len(value)}: {_part(value[0])}" if len(value) >= _LOOKED_AT // 8 else ""


def _part(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_part(v)}" for k, v in value.items())
    if isinstance(value, tuple):
        return f"({', '.join(map(_part, value))})"
    return _outline(value) or type(value).__name__


def _range(value: Any) -> str:
    if value.dtype.kind not in "iuf" or not value.size:
        return ""
    finite = value[np.isfinite(value)]
    missing = value.size - finite.size
    told = f", {missing} not finite" if missing else ""
    return f", {finite.min():.4g} to {finite.max():.4g}{told}" if finite.size else told
