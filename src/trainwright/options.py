"""What can be chosen: from the command line, `[tool.trainwright]` in pyproject.toml, and comments in the source."""

from __future__ import annotations

import linecache
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from trainwright.core.finding import Finding
from trainwright.core.rule import load_rules
from trainwright.errors import UsageError

DEFAULT_BUDGET = 60.0
_ALLOW = re.compile(r"#\s*trainwright:\s*allow\s+([\w\-, ]+)")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a walk is done."""

    budget: float = DEFAULT_BUDGET
    """Seconds for the walk itself, without the script's own start."""
    seed: int = 0
    ignore: tuple[str, ...] = ()
    """Names of rules that do not speak."""
    repair: bool = True

    def check(self) -> None:
        """Reject values that cannot be meant.

        Raises:
            UsageError: for a budget that is not positive, or an unknown rule name.
        """
        if not self.budget > 0:
            raise UsageError(f"--budget must be a positive number of seconds; got {self.budget:g}.")
        known = {r.name for r in load_rules()}
        for name in self.ignore:
            if name not in known:
                raise UsageError(f"--ignore takes the name of a rule; got {name!r}. `trainwright rules` lists them.")

    def ignores(self, finding: Finding) -> bool:
        """Whether a finding is ignored by name, or by a comment on its line."""
        if finding.name in self.ignore:
            return True
        if finding.where is None:
            return False
        line = linecache.getline(str(Path(finding.where.file).absolute()), finding.where.line)
        found = _ALLOW.search(line)
        return found is not None and finding.name in re.split(r"[,\s]+", found.group(1))


def with_settings(options: Options, script: Path) -> Options:
    """The options, with what the nearest pyproject.toml above the script adds.

    Raises:
        UsageError: if the file cannot be read or holds a setting that does not exist.
    """
    for folder in [script.resolve().parent, *script.resolve().parent.parents]:
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            settings = tomllib.loads(file.read_text("utf-8")).get("tool", {}).get("trainwright", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} must be valid TOML: {error}") from error
        unknown = set(settings) - {"ignore", "budget"}
        if unknown:
            raise UsageError(f"{file}: [tool.trainwright] takes ignore and budget; got {', '.join(sorted(unknown))}.")
        budget = options.budget if options.budget != DEFAULT_BUDGET else float(settings.get("budget", DEFAULT_BUDGET))
        return replace(options, ignore=(*options.ignore, *settings.get("ignore", ())), budget=budget)
    return options
