"""The funnel: files and bytes seen, kept, and dropped by reason, with example names."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

import xxhash
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

# Example names to keep per reason.
SAMPLES = 5

WHY: dict[str, str] = tomllib.loads(files("trainwright_lm.corpus").joinpath("reasons.toml").read_text("utf-8"))


@dataclass(slots=True)
class Count:
    """Files and their bytes."""

    files: int = 0
    bytes: int = 0

    def add(self, size: int, files: int = 1) -> None:
        self.files += files
        self.bytes += size


@dataclass(slots=True)
class Drop(Count):
    """Documents dropped for one reason."""

    samples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Funnel:
    """A running count."""

    seen: Count = field(default_factory=Count)
    dropped: dict[str, Drop] = field(default_factory=dict)
    kept: Count = field(default_factory=Count)
    checksum: int = 0
    """Of all contents seen, in any order: the sum of their XXH3 hashes, modulo 2**64."""

    def see(self, size: int, content: bytes = b"") -> None:
        self.seen.add(size)
        self.checksum = (self.checksum + xxhash.xxh3_64_intdigest(content)) % 2**64

    def keep(self, size: int) -> None:
        self.kept.add(size)

    def drop(self, reason: str, size: int, name: str) -> None:
        one = self.dropped.setdefault(reason, Drop())
        one.add(size)
        if len(one.samples) < SAMPLES:
            one.samples.append(name)

    def drop_kept(self, reason: str, size: int, name: str) -> None:
        """Move a document from kept to dropped."""
        self.kept.add(-size, -1)
        self.drop(reason, size, name)

    def add(self, other: Funnel) -> None:
        """Add the count of what comes after this."""
        self.checksum = (self.checksum + other.checksum) % 2**64
        self.seen.add(other.seen.bytes, other.seen.files)
        self.kept.add(other.kept.bytes, other.kept.files)
        for reason, drop in other.dropped.items():
            one = self.dropped.setdefault(reason, Drop())
            one.add(drop.bytes, drop.files)
            one.samples = [*one.samples, *drop.samples][:SAMPLES]


def as_json(funnel: Funnel) -> dict[str, Any]:
    """The funnel for data.json; `from_json` reads it back."""
    return {**asdict(funnel), "checksum": f"{funnel.checksum:016x}"}


def from_json(values: dict[str, Any]) -> Funnel:
    """The funnel that `as_json` wrote."""
    return Funnel(
        seen=Count(**values["seen"]),
        kept=Count(**values["kept"]),
        dropped={reason: Drop(**drop) for reason, drop in values["dropped"].items()},
        checksum=int(values.get("checksum", "0"), 16),
    )


def render(values: dict[str, Any]) -> RenderableType:
    """The funnel of a data.json as a table with one row per reason and its first example names."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    seen = values["seen"]
    unit = unit_of(seen["bytes"])
    for name in ("files", unit[0], "of files", "of bytes"):
        table.add_column(name, justify="right")
    _row(table, "in", seen, seen)
    for reason in sorted(values["dropped"], key=lambda r: -values["dropped"][r]["files"]):
        _row(table, f"- {WHY.get(reason, reason)}", values["dropped"][reason], seen)
    _row(table, "kept", values["kept"], seen, "bold")
    samples = [
        Text.assemble((f"{WHY.get(reason, reason)}: ", "dim"), ", ".join(drop["samples"]))
        for reason, drop in values["dropped"].items()
    ]
    return Group(table, *([Text(), Text("For example", "bold"), *samples] if samples else []))


def unit_of(size: int) -> tuple[str, float]:
    """The display unit for this many bytes, and its size in bytes; a small folder may need kilobytes."""
    return ("MB", 1e6) if size >= 1e6 else ("kB", 1e3)


def _row(table: Table, name: str, count: dict[str, Any], seen: dict[str, Any], style: str = "") -> None:
    shares = [f"{count[unit] / max(seen[unit], 1):.1%}" for unit in ("files", "bytes")]
    table.add_row(
        name, f"{count['files']:,}", f"{count['bytes'] / unit_of(seen['bytes'])[1]:,.1f}", *shares, style=style
    )
