"""Options from the command line, `[tool.trainwright]` in pyproject.toml, and comments in the source."""

from __future__ import annotations

import linecache
import re
import tomllib
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from glob import escape
from os.path import normpath
from pathlib import Path
from typing import Any

from trainwright.core import Finding
from trainwright.errors import UsageError
from trainwright.registry import load_rules

DEFAULT_BUDGET = 120.0
DEVICES = ("auto", "cpu")
SETTINGS = {"budget", "ignore", "per-file-ignores", "samples", "select"}
_ALLOW = re.compile(r"#\s*trainwright:\s*allow\s+([\w\-, ]+)")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a check."""

    budget: float = DEFAULT_BUDGET
    """Time limit of the script's run, in seconds, from its first update on."""
    seed: int = 0
    ignore: tuple[str, ...] = ()
    """Names or codes of silenced rules."""
    select: tuple[str, ...] = ()
    """Names or codes of the rules that speak; empty: all."""
    ignore_in: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names or codes of rules that are silenced in some files, each behind the pattern of the files' absolute paths."""
    baseline: str | None = None
    """The file with the findings that are known, and are left out."""
    repair: bool = True
    device: str = "auto"
    """`cpu`: do not use a GPU even if there is one."""
    samples: bool = True
    """Whether single rows of the data may be shown."""
    verbose: bool = False
    """Whether a terminal's report shows all that was measured, though nothing was found."""
    training: int | None = None
    """The number of the script's one training that is spoken of, counted from 1; None: every training."""

    def check(self) -> None:
        """Reject invalid values.

        Raises:
            UsageError: for a budget or a training's number that is not positive, an unknown device or rule name.
        """
        if self.training is not None and self.training < 1:
            raise UsageError(f"--training must be the number of a training, from 1 on; got {self.training}.")
        if not 0 < self.budget < float("inf"):
            raise UsageError(f"--budget must be a positive number of seconds; got {self.budget:g}.")
        if self.device not in DEVICES:
            raise UsageError(f"--device must be auto or cpu; got {self.device!r}.")
        _check_names(self.ignore, "--ignore")
        _check_names(self.select, "--select")

    def ignores(self, finding: Finding) -> bool:
        """Whether a finding is silenced by name, in its file, or by a comment on its line."""
        named = {finding.name, finding.code}
        if named & {*self.ignore} or (self.select and not named & {*self.select}):
            return True
        if finding.where is None:
            return False
        file = finding.where.file  # a notebook's cell is no file
        file = file if file in linecache.cache else str(Path(file).absolute())
        if any(named & {*names} and fnmatch(str(Path(file).resolve()), pattern) for pattern, names in self.ignore_in):
            return True
        line = linecache.getline(file, finding.where.line)
        found = _ALLOW.search(line)
        return found is not None and bool(named & {*re.split(r"[,\s]+", found.group(1))})


def with_settings(options: Options, script: Path) -> Options:
    """The options, with the settings of the nearest pyproject.toml above the script.

    Raises:
        UsageError: if the file is not valid TOML or has an unknown setting.
    """
    for file in filter(Path.is_file, (folder / "pyproject.toml" for folder in script.resolve().parents)):
        try:
            tools = tomllib.loads(file.read_text("utf-8")).get("tool", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} must be valid TOML: {error}") from error
        settings = tools.get("trainwright", {}) if isinstance(tools, dict) else tools
        _check_settings(settings, file)
        patterns = settings.get("per-file-ignores", {}).items()
        return replace(
            options,
            budget=float(settings.get("budget", options.budget)),
            ignore=(*options.ignore, *settings.get("ignore", ())),
            select=options.select or tuple(settings.get("select", ())),
            ignore_in=tuple((one, tuple(names)) for pattern, names in patterns for one in _below(file.parent, pattern)),
            samples=settings.get("samples", options.samples),
        )
    return options


def _below(folder: Path, pattern: str) -> set[str]:
    """Patterns of absolute paths: a name stands for files of any folder, a path is one from the settings' folder."""
    if "/" not in pattern:
        return {f"*/{pattern}"}
    whole = normpath(Path(escape(str(folder)), f"{pattern}*" if pattern.endswith("/") else pattern))
    return {whole, whole.replace("/**/", "/")}


def shows_samples(file: str) -> bool:
    """Whether the settings above a file, or above the working folder, let single rows be shown; for a notebook or an object.

    Raises:
        UsageError: as `with_settings`.
    """
    path = Path(file)
    return with_settings(Options(), path if path.is_file() else Path.cwd() / "cell").samples


def _check_settings(settings: Any, file: Path) -> None:
    where = f"{file}: [tool.trainwright]"
    if not isinstance(settings, dict):
        raise UsageError(f"{where} must be a table; got {settings!r}.")
    if unknown := set(settings) - SETTINGS:
        raise UsageError(f"{where} takes {', '.join(sorted(SETTINGS))}; got {', '.join(sorted(unknown))}.")
    if not isinstance(settings.get("samples", True), bool):
        raise UsageError(f"{where} samples must be true or false; got {settings['samples']!r}.")
    budget = settings.get("budget", DEFAULT_BUDGET)
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < float("inf"):
        raise UsageError(f"{where} budget must be a positive number of seconds; got {budget!r}.")
    in_files = settings.get("per-file-ignores", {})
    if not isinstance(in_files, dict):
        raise UsageError(f"{where} per-file-ignores must be a table of lists by patterns of files; got {in_files!r}.")
    lists = {f"per-file-ignores {pattern!r}": names for pattern, names in in_files.items()}
    for name, names in {**{name: settings.get(name, []) for name in ("ignore", "select")}, **lists}.items():
        _check_names(names, f"{where} {name}")


def _check_names(names: Any, where: str) -> None:
    """Reject what names no rule."""
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{where} must be a list of names or codes of rules; got {names!r}.")
    known = {word for rule in load_rules() for word in (rule.name, rule.code)} if names else set()
    if strange := [name for name in names if name not in known]:
        told = f"there is no rule {strange[0]!r}. `trainwright rules` lists all rules."
        raise UsageError(f"{where} takes names and codes of rules; {told}")
