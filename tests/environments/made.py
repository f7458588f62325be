"""Makes an environment of a user's, in .environments: Trainwright as it is installed from its wheel, and what is asked for.

Packages beside the base's lie in a folder of their own, so that torch is installed once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from environments.stubs import write_stubs
from environments.table import Environment

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".environments"
_CONSTRAINTS = ("-c", str(ROOT / "constraints.txt"))
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


@dataclass(frozen=True)
class Made:
    """An environment that is there."""

    python: str
    variables: dict[str, str]


def made(name: str, one: Environment) -> Made:
    """The environment, made if it is not there."""
    base = _base(one.base or "bare", one.python, torch=one.base == "torch")
    folder = FOLDER / name / "site-packages"
    variables = {"PYTHONPATH": str(folder), "KERAS_BACKEND": "", **one.variables}
    if not variables["KERAS_BACKEND"]:
        del variables["KERAS_BACKEND"]
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if one.installed:
            # A version of the table's own, or for another Python, is not the tested one.
            pinned = any("==" in p for p in one.installed) or bool(one.python)
            needs = () if one.with_needs else ("--no-deps",)
            versions = () if pinned else _CONSTRAINTS
            _run(base, *_PIP, *needs, *versions, "--target", str(folder), *one.installed)
            write_stubs(folder)
        (folder / "made").touch()
    return Made(str(base), variables)


def _base(name: str, python: str, *, torch: bool) -> Path:
    """A virtual environment with Trainwright, and torch if it is asked for."""
    folder = FOLDER / f"{name}{'-' if python else ''}{python}"
    interpreter = folder / "bin" / "python"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python or sys._base_executable, "-m", "venv", str(folder)], check=True)
        constraints = () if python else _CONSTRAINTS
        _run(interpreter, *_PIP, *constraints, str(ROOT), *(["torch"] if torch else []))
        (folder / "made").touch()
    # The sources of now, whenever the environment was made.
    _run(interpreter, *_PIP, "--no-deps", "--force-reinstall", str(ROOT))
    return interpreter


def _run(python: Path, *words: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([str(python), *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
