"""Programs that other authors shipped inside packages: read where they lie, never copied into this repository.

Packages that are not installed are fetched once into `.field/packages`, and what they need besides into `.field/site`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

MADE = Path(__file__).parent / "made"


@dataclass(frozen=True)
class Shipped:
    """One program of another author."""

    package: str  # as pip names it, with a version; without one it is installed here
    file: str  # in the package's folder
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # further packages, with their versions
    paths: tuple[str, ...] = (".",)  # folders of the package that are on its path
    changes: tuple[tuple[str, str], ...] = ()  # settings that are too long or too slow: text before, text now

    @property
    def name(self) -> str:
        """Package and file."""
        return f"shipped/{self.package.partition('==')[0]}/{self.file}"

    def folder(self, field: Path) -> Path:
        """Where its package lies."""
        return _installed(self.package) if "==" not in self.package else field / "packages" / self.package


def variables(one: Shipped, field: Path) -> tuple[tuple[str, str], ...]:
    """What it runs with besides the usual variables; PYTHONPATH goes behind the usual one."""
    folder = one.folder(field)
    own = one.paths if "==" in one.package else ()
    paths = [MADE, *(folder / p for p in own), *(field / "site" / n for n in one.needs)]
    return (
        ("PYTHONPATH", os.pathsep.join(map(str, paths))),
        ("HF_HOME", str(field / "hub_home")),
        ("HF_HUB_CACHE", str(field / "hub")),
        ("ART_DATA_PATH", str(field / "art")),
        ("WANDB_MODE", "disabled"),
        ("CUDA_VISIBLE_DEVICES", ""),
        ("MADE_DATA", _made()),  # for the cache of runs: other data, other results
    )


def changes(one: Shipped, field: Path) -> tuple[tuple[str, str], ...]:
    """Its settings, with the package's folder where they name it."""
    folder = str(one.folder(field))
    return tuple((before, now.replace("{package}", folder)) for before, now in one.changes)


@functools.cache
def _made() -> str:
    parts = [p.read_bytes() for p in sorted(MADE.rglob("*.py"))]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def available(entries: list[Shipped], field: Path) -> list[Shipped]:
    """Those whose packages are there or can be fetched; a line on standard error for each package that cannot."""
    _make_hub(field / "hub")
    missing = {r for one in entries for r in _requirements(one) if not _there(r, one, field)}
    return [one for one in entries if not missing & set(_requirements(one))]


def _requirements(one: Shipped) -> tuple[str, ...]:
    return (one.package, *one.needs)


def _there(requirement: str, one: Shipped, field: Path) -> bool:
    if "==" not in requirement:
        return importlib.util.find_spec(requirement) is not None
    if requirement == one.package:
        return _source(requirement, field / "packages" / requirement)
    return _site(requirement, field / "site" / requirement)


@functools.cache
def _source(requirement: str, folder: Path) -> bool:
    """Fetch a package as its authors packed it, with its examples, and unpack it without its top folder."""
    if folder.exists():
        return True
    with tempfile.TemporaryDirectory() as place:
        fetched = _pip("download", "--no-deps", "--no-binary", ":all:", "--dest", place, requirement)
        archives = list(Path(place).iterdir()) if fetched else []
        if not archives:
            return _left_out(requirement)
        unpacked = Path(place) / "unpacked"
        _unpack(archives[0], unpacked)
        folder.parent.mkdir(parents=True, exist_ok=True)
        (top,) = unpacked.iterdir()
        shutil.move(top, folder)
    return True


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".zip":
        zipfile.ZipFile(archive).extractall(folder)
        return
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


@functools.cache
def _site(requirement: str, folder: Path) -> bool:
    """Install a package, without what it needs, into a folder of its own."""
    if folder.exists() or _pip("install", "--no-deps", "--target", str(folder), requirement):
        return True
    return _left_out(requirement)


def _pip(*arguments: str) -> bool:
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    try:
        return subprocess.run(command, capture_output=True, timeout=300, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _left_out(requirement: str) -> bool:
    print(f"{requirement} cannot be fetched: its programs are left out", file=sys.stderr)
    return False


@functools.cache
def _installed(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return Path(package)
    return Path(found.origin).parent


def _make_hub(folder: Path) -> None:
    if not folder.exists():
        done = subprocess.run(
            [sys.executable, str(MADE / "hub.py"), str(folder)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"the made models are left out: {done.stderr.strip()[-300:]}", file=sys.stderr)
