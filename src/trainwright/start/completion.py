"""Completion in a shell: behind SCRIPT nothing of ours is offered, and names of files are."""

from __future__ import annotations

from typing import Any

from cyclopts import App

# Where cyclopts's script for bash has counted the words behind the command, and goes on to what it offers.
_COUNTED = "  # Determine command level and generate completions\n"
_BEHIND_SCRIPT = """\
  case "${cmd_path[0]}" in
    check|run|bundle) if ((positional_count > 0)); then COMPREPLY=(); return; fi ;;
  esac

"""


class CompletedApp(App):
    """An app whose completion knows that what stands behind SCRIPT is the script's own."""

    def generate_completion(self, **given: Any) -> str:
        """The script for a shell; of bash, where it offers nothing, names of files are completed."""
        text: str = super().generate_completion(**given)
        if not text.startswith("# Bash"):
            return text
        return text.replace(_COUNTED, _BEHIND_SCRIPT + _COUNTED).replace("\ncomplete -F", "\ncomplete -o default -F")
