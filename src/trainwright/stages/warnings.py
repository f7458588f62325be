"""What the script's libraries warned of, from its first line on."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Facts, LibraryWarning, Stage


@dataclass(frozen=True, kw_only=True)
class WarningFacts(Facts):
    """The warnings of libraries, each once, without what is known to be harmless."""

    stage = Stage.SETUP
    heard: tuple[LibraryWarning, ...] = ()

    def speaking_for(self, rule: str) -> tuple[LibraryWarning, ...]:
        """The warnings that are evidence for a rule's fault."""
        return tuple(w for w in self.heard if w.rule == rule)
