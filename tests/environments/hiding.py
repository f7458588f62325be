"""Runs Trainwright's command line, or a script, as if packages were not installed.

    HIDDEN=hidden.json python hiding.py check script.py
    HIDDEN=hidden.json python hiding.py script.py

hidden.json holds {"modules": […], "distributions": […]}; at the end the top-level modules that were imported are written to
imported.json beside it.
"""

import atexit
import importlib.metadata
import json
import os
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_FILE = Path(os.environ["HIDDEN"])
_HIDDEN = json.loads(_FILE.read_text(encoding="utf-8"))


class WithoutHidden(PathFinder):
    """Finds what lies on the path, but the hidden packages."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] in _HIDDEN["modules"]:
            return None
        return super().find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, context=importlib.metadata.DistributionFinder.Context()):
        found = PathFinder.find_distributions(context)
        return (d for d in found if (d.name or "").lower().replace("_", "-") not in _HIDDEN["distributions"])


def main() -> None:
    """Hide, and run what is named."""
    sys.meta_path[:] = [WithoutHidden if f is PathFinder else f for f in sys.meta_path]
    atexit.register(
        lambda: _FILE.with_name("imported.json").write_text(
            json.dumps(sorted({name.partition(".")[0] for name in sys.modules}))
        )
    )
    sys.argv = sys.argv[1:]
    if sys.argv[0].endswith(".py"):
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    from trainwright.cli import main as trainwright

    sys.argv.insert(0, "trainwright")
    trainwright()


main()
