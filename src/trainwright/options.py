"""Options from the command line, `[tool.trainwright]` in pyproject.toml, and comments in the source."""

from __future__ import annotations

import linecache
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainwright.core import Finding
from trainwright.errors import UsageError
from trainwright.registry import load_rules

DEFAULT_BUDGET = 120.0
DEVICES = ("auto", "cpu")
_ALLOW = re.compile(r"#\s*trainwright:\s*allow\s+([\w\-, ]+)")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a check."""

    budget: float = DEFAULT_BUDGET
    """Time limit of the script's run, in seconds, from its first update on."""
    seed: int = 0
    ignore: tuple[str, ...] = ()
    """Names of silenced rules."""
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
        known = {r.name for r in load_rules()} if self.ignore else set()
        for name in self.ignore:
            if name not in known:
                raise UsageError(
                    f"--ignore takes the name of a rule; there is no rule {name!r}. `trainwright rules` lists all rules."
                )

    def ignores(self, finding: Finding) -> bool:
        """Whether a finding is silenced by name, or by a comment on its line."""
        if finding.name in self.ignore:
            return True
        if finding.where is None:
            return False
        file = finding.where.file  # a notebook's cell is no file
        file = file if file in linecache.cache else str(Path(file).absolute())
        line = linecache.getline(file, finding.where.line)
        found = _ALLOW.search(line)
        return found is not None and finding.name in re.split(r"[,\s]+", found.group(1))


def with_settings(options: Options, script: Path) -> Options:
    """The options, with the settings of the nearest pyproject.toml above the script.

    Raises:
        UsageError: if the file is not valid TOML or has an unknown setting.
    """
    for folder in [script.resolve().parent, *script.resolve().parent.parents]:
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            tools = tomllib.loads(file.read_text("utf-8")).get("tool", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} must be valid TOML: {error}") from error
        settings = tools.get("trainwright", {}) if isinstance(tools, dict) else tools
        _check_settings(settings, file)
        budget = float(settings.get("budget", options.budget))
        ignore = (*options.ignore, *settings.get("ignore", ()))
        return replace(options, ignore=ignore, budget=budget, samples=settings.get("samples", options.samples))
    return options


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
    if unknown := set(settings) - {"ignore", "budget", "samples"}:
        raise UsageError(f"{where} takes ignore, budget and samples; got {', '.join(sorted(unknown))}.")
    if not isinstance(settings.get("samples", True), bool):
        raise UsageError(f"{where} samples must be true or false; got {settings['samples']!r}.")
    ignore, budget = settings.get("ignore", []), settings.get("budget", DEFAULT_BUDGET)
    if not isinstance(ignore, list) or not all(isinstance(n, str) for n in ignore):
        raise UsageError(f"{where} ignore must be a list of rule names; got {ignore!r}.")
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < float("inf"):
        raise UsageError(f"{where} budget must be a positive number of seconds; got {budget!r}.")
    if strange := [n for n in ignore if n not in {r.name for r in load_rules()}]:
        raise UsageError(
            f"{where} ignore takes names of rules; there is no rule {strange[0]!r}. `trainwright rules` lists all rules."
        )
