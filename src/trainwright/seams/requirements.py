"""The oldest version of each framework that a check supports, and the message for older ones.

Only packages that the script has imported are examined; others in the environment do not matter, and nothing is
imported.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from trainwright.errors import UnsupportedVersion
from trainwright.frameworks.packages import SHOWN


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """The oldest version of a package that a check supports; tests/environments pins it."""

    name: str
    """Its name as in its documentation."""
    least: str
    distribution: str
    """Its name for pip."""


REQUIRED = {
    "numpy": Requirement(name="NumPy", least="1.26", distribution="numpy"),
    "torch": Requirement(name="torch", least="2.2", distribution="torch"),
    "transformers": Requirement(name="transformers", least="4.41", distribution="transformers"),
    "accelerate": Requirement(name="accelerate", least="1.1", distribution="accelerate"),
    "lightning": Requirement(name="lightning", least="2.2", distribution="lightning"),
    "pytorch_lightning": Requirement(name="pytorch-lightning", least="2.2", distribution="pytorch-lightning"),
    "keras": Requirement(name="Keras", least="3.7", distribution="keras"),
    "tensorflow": Requirement(name="TensorFlow", least="2.16", distribution="tensorflow"),
    "tf_keras": Requirement(name="tf-keras", least="2.16", distribution="tf-keras"),
}


def require(*packages: str) -> None:
    """Check that these packages are not too old for a check.

    Raises:
        UnsupportedVersion: with the required version, the installed one and what to do.
    """
    if why := shortfall(["numpy", *packages]):
        raise UnsupportedVersion(why)


def packages_of(built: Any) -> list[str]:
    """The packages of an object's classes, by the names that they are imported by."""
    return list(dict.fromkeys(k.__module__.partition(".")[0] for k in type(built).__mro__))


def versions() -> dict[str, str]:
    """Versions of Python and of the relevant packages that are loaded."""
    return {"python": platform.python_version(), **{p: _installed(p) for p in SHOWN if p in sys.modules}}


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # tensorflow comes as tensorflow-cpu, too
        return str(getattr(sys.modules[package], "__version__", ""))


def shortfall(packages: Iterable[str]) -> str:
    """The requirement, the installed version and the remedy for packages that are too old; empty if none is."""
    short = [(REQUIRED[p], found) for p in packages if p in REQUIRED and is_too_old(found := version(p), p)]
    if not short:
        return ""
    needed = " and ".join(f"{one.name} {one.least} or later" for one, _ in short)
    found = " and ".join(f"{one.name} {version}" for one, version in short)
    install = " ".join(f'"{one.distribution}>={one.least}"' for one, _ in short)
    return (
        f"a check needs {needed}, and this environment has {found}; the script is not at fault. "
        f"Install a newer version (pip install {install}), or check the script in an environment that has one."
        f"{_LEGACY_KERAS if any(one.name == 'Keras' for one, _ in short) else ''}"
    )


_LEGACY_KERAS = ' A script of Keras 2 can be checked with tf-keras: pip install "tf-keras>=2.16", import tf_keras.'


def version(package: str) -> str:
    """The version of an imported package; empty if it is not imported or its version is unknown."""
    module = sys.modules.get(package)
    if module is None:
        return ""
    # A package that is being imported may not have set its version yet.
    found = getattr(module, "__version__", "")
    if not isinstance(found, str) or not found:
        try:
            found = importlib.metadata.version(REQUIRED[package].distribution)
        except importlib.metadata.PackageNotFoundError:
            return ""
    return found


def is_too_old(found: str, package: str) -> bool:
    """Whether a version is older than the package's oldest supported one; an unreadable version counts as new."""
    release = _release(found)
    return bool(release) and release < _release(REQUIRED[package].least)


def _release(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 13, 0) for 2.13.0+cpu."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(n) for n in numbers[0].split(".")) if numbers else ()
