"""One check in a process of its own: asked on standard input, told in JSON lines, within the server's folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainwright.checking import judge_program, prepare
from trainwright.console import utf8
from trainwright.core.report import to_dict
from trainwright.errors import TrainwrightError, UsageError
from trainwright.options import Options, with_settings
from trainwright.start.launchers import is_command, understood
from trainwright.start.program import Program
from trainwright.start.scripts import check_script_file

# How far it is is told after so many seconds, also where nothing has happened: some clients give up without a word.
_TOLD_SECONDS = 1.0
# Language models get the numbers in a hunk's head wrong, and leave out lines around it: git finds it by its lines.
_GIT = ("git", "apply", "--verbose", "--recount", "--unidiff-zero", "--ignore-whitespace", "--whitespace=nowarn")


def main() -> None:
    """Answer what is asked; end, with the run, when standard input does: the client waits no longer."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through every context, which ends the run
    asked, last = json.loads(sys.stdin.readline()), time.monotonic()
    threading.Thread(target=_end_with_input, daemon=True).start()

    def tell(**told: Any) -> None:
        print(utf8(json.dumps(told, ensure_ascii=False)), flush=True)

    def say(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _TOLD_SECONDS:
            last = time.monotonic()
            tell(say=text)

    try:
        folders = [Path(one) for one in asked["folders"]]
        try:
            program = enter_folder(asked["script"], asked["arguments"], folders)
            copies = apply_patch(asked["patch"], folders) if asked["patch"] else None
        except (OSError, ValueError) as error:
            raise UsageError(f"script must be a file or a command, and patch of UTF-8 files: {error}") from None
        own = with_settings(Options(training=asked["training"] or None), Path(program.script))
        options = replace(own, budget=asked["budget"] or own.budget, samples=asked["samples"] and own.samples)
        prepare(program, options)
        told = to_dict(judge_program(program, options, say, copies=copies))
        tell(report=told | {"message": f"{told['message']} {program.said}".strip()}, samples=options.samples)
    except TrainwrightError as error:
        tell(error=str(error))
    except Exception as error:  # ours: a client shows no traceback
        tell(error=f"internal error in Trainwright, no fault of the script: {type(error).__name__}: {error}")


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def enter_folder(script: str, arguments: Sequence[str], folders: Sequence[Path]) -> Program:
    """The program that a client names, whose folder is entered; raises UsageError if it lies elsewhere."""
    holding = (one for one in folders if (one / script).is_file() and (one / script).resolve().is_relative_to(one))
    os.chdir(next(holding, folders[0]))
    is_started = is_command(script.partition(" ")[0])
    program = understood([script, *arguments]) if is_started else Program(script=script, arguments=tuple(arguments))
    if program.module:
        raise UsageError(f"a module cannot be checked here; name its file instead of {program.script}.")
    _require_inside(program.script, folders)
    check_script_file(program.script)
    return program


def _require_inside(file: str, folders: Sequence[Path]) -> None:
    path = Path(file).resolve()
    if not any(path.is_relative_to(one) for one in folders):
        served = ", ".join(map(str, folders))
        raise UsageError(f"{file} must lie within {served}, which `trainwright mcp` was started for; it is {path}.")


def apply_patch(patch: str, folders: Sequence[Path]) -> dict[str, str]:
    """The texts of files in which a diff is applied, by resolved path; raises UsageError if it does not apply."""
    named = re.findall(r"^\+\+\+ ([^\t\r\n]+)", patch, re.MULTILINE)
    strip = int(all(name.startswith("b/") for name in named))
    names = [name[2 * strip :].strip() for name in named]
    for name in names:
        _require_inside(name, folders)
        is_named_from_here = not Path(name).is_absolute() and ".." not in Path(name).parts
        if not (is_named_from_here and Path(name).is_file() and name.endswith(".py")):
            raise UsageError(f"patch can only change Python files that are there, named from {Path.cwd()}; got {name}.")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, Path(folder, name))
        alone = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        alone |= {"GIT_CEILING_DIRECTORIES": str(Path(folder).resolve().parent), "LC_ALL": "C"}
        lines = (patch.rstrip("\r\n") + "\n").encode()
        if shutil.which("git") is None:
            raise UsageError("patch needs git, which is not installed.")
        done = subprocess.run([*_GIT, f"-p{strip}"], cwd=folder, env=alone, input=lines, capture_output=True)
        if done.returncode or not names:
            said = done.stderr[:2000].decode(errors="replace")
            raise UsageError(f"patch must be a unified diff that applies; nothing was run. git: {said}")
        return {str(Path(name).resolve()): Path(folder, name).read_text("utf-8") for name in names}


if __name__ == "__main__":
    main()
