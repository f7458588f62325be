"""In the processes that have this folder on their path, Python does as if packages were not installed.

    HIDDEN=hidden.json PYTHONPATH=hiding python -m trainwright check script.py

hidden.json holds {"modules": […], "distributions": […], "forbidden": […]}: a process that imports a forbidden module ends.
Beside it, the process that was started first lists the top-level modules that it has imported in imported.json.
"""

import atexit
import importlib.metadata
import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

_FILE = Path(os.environ["HIDDEN"])
_HIDDEN = json.loads(_FILE.read_text(encoding="utf-8"))
FORBIDDEN = 97


class _Ending:
    """The loader of a module that must not be imported."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        os.write(2, f"forbidden: import {spec.name}\n".encode())
        os._exit(FORBIDDEN)

    @staticmethod
    def exec_module(module: object) -> None:
        """Is never reached."""


class WithoutHidden(PathFinder):
    """Finds what lies on the path, but the hidden packages."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] in _HIDDEN["modules"]:
            return None
        if fullname in _HIDDEN["forbidden"]:
            return ModuleSpec(fullname, _Ending())
        return super().find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, context=importlib.metadata.DistributionFinder.Context()):
        found = PathFinder.find_distributions(context)
        return (d for d in found if (d.name or "").lower().replace("_", "-") not in _HIDDEN["distributions"])


sys.meta_path[:] = [WithoutHidden if f is PathFinder else f for f in sys.meta_path]
if not os.environ.get("HIDDEN_BEGAN"):
    os.environ["HIDDEN_BEGAN"] = "yes"
    atexit.register(
        lambda: _FILE.with_name("imported.json").write_text(
            json.dumps(sorted({name.partition(".")[0] for name in sys.modules}))
        )
    )
