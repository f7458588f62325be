"""The oldest version of each framework that a walk knows its way in, and what to say of an older one.

Read from what the script has imported: what merely lies in the environment is nobody's matter, and nothing is imported.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """The oldest version of a package that a walk works with; tests/environments holds it."""

    name: str
    """As its documentation spells it."""
    least: str
    distribution: str
    """What pip installs it by."""


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


def shortfall(packages: Iterable[str]) -> str:
    """What must hold, what was found and what to do, of the packages that are too old; empty if none is."""
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
    """The version of a package that is imported; empty if it is not, or nobody can tell."""
    module = sys.modules.get(package)
    if module is None:
        return ""
    # While a package is being imported it may not have told its version yet.
    found = getattr(module, "__version__", "")
    if not isinstance(found, str) or not found:
        try:
            found = importlib.metadata.version(REQUIRED[package].distribution)
        except importlib.metadata.PackageNotFoundError:
            return ""
    return found


def is_too_old(found: str, package: str) -> bool:
    """Whether a version is older than the package's oldest one; one that cannot be read is taken to be new."""
    release = _release(found)
    return bool(release) and release < _release(REQUIRED[package].least)


def _release(text: str) -> tuple[int, ...]:
    """The numbers at the head of a version: (2, 13, 0) of 2.13.0+cpu."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(n) for n in numbers[0].split(".")) if numbers else ()
