"""Counts what a check kept away from files, logs, trackers and other machines, and describes it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class KeptAway:
    """Counts of what was kept away, and the names of the trackers that were disabled."""

    records: int = 0
    """Log records."""
    requests: int = 0
    """Requests and connections to other machines."""
    commands: int = 0
    """Commands that were not run."""
    refused: dict[str, None] = field(default_factory=dict)
    """What was refused, where the kernel isolates no process."""
    files: set[str] = field(default_factory=set)
    """Files that were redirected."""
    uploads: set[str] = field(default_factory=set)
    """Names of repositories that the script wanted to write to."""
    services: dict[str, str] = field(default_factory=dict)
    """Trackers and the Hub: how each was disabled, by name."""

    def remark(self) -> tuple[str, ...]:
        """What was refused, in a sentence."""
        if not self.refused:
            return ()
        first, *further = self.refused
        others = f" (and {len(further)} more)" if further else ""
        return (f"This machine's kernel isolates no process, so {first}{others} was refused.",)

    def said(self) -> tuple[str, ...]:
        """What was kept away, in a few words each."""
        names = [f"{name} ({how})" for name, how in sorted(self.services.items())]
        return (
            *_some(self.records, "log record"),
            *names,
            *_some(len(self.files), "file"),
            *_some(self.requests, "network request"),
            *_some(self.commands, "command"),
        )


def _some(count: int, what: str) -> tuple[str, ...]:
    return (f"{count:,} {what}{'s' if count > 1 else ''}",) if count else ()
