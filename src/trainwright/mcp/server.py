"""The server: its tools, the checks that it remembers, and the processes in which they run."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from rich.console import Console

from trainwright import __version__
from trainwright.core.report import from_dict
from trainwright.explain.answer import explain as find_answer
from trainwright.mcp.answers import Checked, tell_check, tell_rows, tell_sheet, write

# Checks that are remembered; and seconds in which one that is cancelled ends its run.
MOST_CHECKS, _END_SECONDS = 20, 20.0
_INSTRUCTIONS = """\
Trainwright runs a training script isolated, as it is, and says whether it learns; if not, the first cause. You can read
code; this shows what a run does. Use check when a training does not learn, crashes, gives NaN or numbers too good to be
true, after you changed one, and before a long run. Try a cure with check(script, patch=DIFF), which edits no file,
before you write it. Errors and warnings rest on measurements, notes are merely unusual; skipped and remarks say what
was not looked at. sheet(id) has numbers, rows(id) single rows; explain(text) tells of a message or a complaint."""
Call = Context[Any, Any]
Words = tuple[str, ...]


class Tools:
    """The tools of a server of these (resolved) folders; their docstrings are what a model reads of them."""

    def __init__(self, folders: Sequence[Path], samples: bool) -> None:
        self._served = {"folders": [str(one) for one in folders], "samples": samples}
        self._checks, self._count, self._turn = dict[str, Checked](), 0, anyio.Lock()

    async def check(
        self, call: Call, script: str, arguments: Words = (), patch: str = "", budget: float = 0, training: int = 0
    ) -> str:
        """Run a training script isolated, as it is or with a patch in memory: does it learn; if not, the first cause.

        script: a file, or a command such as "torchrun train.py"; arguments: the script's own.
        patch: a unified diff of .py files; no file is written, and a hunk is found by its lines.
        budget: seconds of the run from its first update on (120); further runs, with faults fixed, take as long again.
        training: the number of one training of several, from 1 on.
        """
        asked = {"script": script, "arguments": arguments, "patch": patch, "budget": budget, "training": training}
        async with self._turn:  # two trainings at once would take each other's time
            told = await _run_child({**self._served, **asked}, call)
        self._count += 1
        command, known = (script, *arguments, str(training)), reversed(self._checks.values())
        before = next((one for one in known if one.command == command and not one.patch), None) if patch else None
        checked = Checked(f"c{self._count}", command, patch, from_dict(told["report"]), told["samples"])
        self._checks = dict([*self._checks.items(), (checked.id, checked)][-MOST_CHECKS:])
        return tell_check(checked, before)

    def sheet(self, id: str, table: str = "") -> str:
        """What a check's run showed: scores, curves, classes, inputs, weights, …; table: only the one of this name."""
        return tell_sheet(self._find(id), table)

    def rows(self, id: str, of: Literal["", "held-out", "training"] = "", wrong: bool = False, start: int = 0) -> str:
        """Rows as the model received them, with label, answer and loss; wrong: only these; start: where to go on."""
        return tell_rows(self._find(id), of, wrong, max(start, 0))

    def explain(self, text: str) -> str:
        """What is known of an error message, a traceback, a complaint ("loss is nan") or a rule. Runs nothing."""
        found, shown = find_answer(text)
        Console(file=(page := io.StringIO()), width=120, color_system=None).print(shown)
        told = "\n".join(line.rstrip() for line in page.getvalue().strip().splitlines())
        return write({"text" if found else "nothing_found": told})

    def _find(self, id: str) -> Checked:
        if id not in self._checks:
            raise ToolError(f"id must be of one of the last checks ({', '.join(self._checks)}); got {id!r}.")
        return self._checks[id]


async def _run_child(asked: dict[str, Any], call: Call) -> dict[str, Any]:
    """What a check in a process of its own tells at its end; cancelled, that process and its run are ended."""
    began, rest = anyio.current_time(), b""
    process = await anyio.open_process([sys.executable, "-P", "-m", "trainwright.mcp.child"], stderr=DEVNULL)
    assert process.stdin is not None and process.stdout is not None
    try:
        await process.stdin.send(json.dumps(asked).encode() + b"\n")
        async for part in process.stdout:
            *lines, rest = (rest + part).split(b"\n")
            for told in map(json.loads, lines):
                if "error" in told:
                    raise ToolError(told["error"])
                if "report" in told:
                    return dict(told)
                await call.report_progress(round(anyio.current_time() - began, 1), message=told["say"])
        raise ToolError(f"internal error in Trainwright: the check ended with exit status {await process.wait()}.")
    finally:
        with anyio.move_on_after(_END_SECONDS, shield=True):
            await process.stdin.aclose()
            await process.wait()
        if process.returncode is None:
            process.kill()


def make_server(folders: Sequence[Path], *, samples: bool = True) -> MCPServer[Any]:
    """The server of existing folders; samples: whether rows may be shown."""
    tools = Tools([one.resolve() for one in folders], samples)
    server = MCPServer[Any]("trainwright", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
    for tool in (tools.check, tools.sheet, tools.rows, tools.explain):
        # A check runs code, which may read the user's files, and fetch until training begins: clients are to ask.
        runs = tool == tools.check
        hints = ToolAnnotations(read_only_hint=not runs, destructive_hint=False, open_world_hint=runs)
        server.add_tool(tool, annotations=hints, structured_output=False)
    return server
