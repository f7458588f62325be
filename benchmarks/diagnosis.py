"""Run every bad, good and healthy script as a user would, a process each, and print what was named.

    .venv/bin/python benchmarks/diagnosis.py [--jobs N] [--write FILE] [--keras [BACKEND | none]] [--reports FILE]
        [--against FILE] [FILTER]

Scripts for Keras are run on each of its three backends that they are written for. For each framework: planted faults
named at all, named as the first cause at the announced line, findings besides them, findings above a note on scripts that
have no fault (false alarms), and seconds of the check, as its report says them, and of the whole process.

--reports keeps every report as JSON, and --against compares them with those of an earlier run: what changes no report
leaves nothing but seconds different. Both seed the scripts that set no seed (seeded/sitecustomize.py).
"""

import argparse
import collections
import concurrent.futures
import datetime
import difflib
import importlib.metadata
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
sys.path[:0] = [str(TESTS / "helpers"), str(ROOT)]
from twins import find_scripts, write_script  # noqa: E402

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "lm" / "src"), str(TESTS / "helpers")]),
    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    "HF_HUB_OFFLINE": "1",
}
_EXPECTED = re.compile(r"#\s*expect:\s*([a-z-]+)")
_IMPORTS_KERAS = re.compile(r"^(?:import|from) keras\b", re.MULTILINE)
_WRITTEN_FOR = re.compile(r"^# backends: (.+)$", re.MULTILINE)
_SECONDS = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds)\b")
BACKENDS = ("tensorflow", "torch", "jax")


@dataclass(frozen=True)
class Diagnosis:
    """What one check said."""

    script: Path
    framework: str
    planted: tuple[tuple[str, int], ...]
    named: int
    first: bool
    extra: tuple[str, ...]
    check_seconds: float
    process_seconds: float
    remark: str = ""
    report: dict[str, Any] | None = None


@dataclass
class Tally:
    """All of one framework."""

    all: list[Diagnosis] = field(default_factory=list)

    def row(self, name: str) -> str:
        """One line of the table."""
        faulty = [d for d in self.all if d.planted]
        sound = [d for d in self.all if not d.planted]
        planted = sum(len(d.planted) for d in faulty)
        cells = [
            name,
            f"{sum(d.named for d in faulty)} of {planted}",
            f"{sum(d.first for d in faulty)} of {len(faulty)}",
            str(sum(len(d.extra) for d in faulty)),
            f"{sum(bool(d.extra or d.remark) for d in sound)} of {len(sound)}",
            _spread([d.check_seconds for d in self.all]),
            _spread([d.process_seconds for d in self.all]),
        ]
        return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, and a line for each script that did not go as it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="part of the scripts' paths")
    parser.add_argument("--jobs", type=int, default=1, help="how many checks run at a time")
    parser.add_argument("--write", type=Path, help="also write the table to this Markdown file")
    parser.add_argument(
        "--keras",
        nargs="?",
        const="",
        metavar="BACKEND",
        help="Keras's scripts alone, on this backend or on each; `none` leaves them out",
    )
    parser.add_argument("--reports", type=Path, metavar="FILE", help="write every report to this JSON file")
    parser.add_argument("--against", type=Path, metavar="FILE", help="print what differs from such a file")
    options = parser.parse_args()
    scripts = [(s, b) for s in _scripts() if options.filter in str(s) for b in _backends(s)]
    if options.keras is not None:
        scripts = [
            (s, b) for s, b in scripts if (b and options.keras in ("", b)) or (not b and options.keras == "none")
        ]
    if options.reports or options.against:
        ENVIRONMENT["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent / "seeded")
        ENVIRONMENT["PYTHONHASHSEED"] = "0"
    done: list[Diagnosis] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for one in pool.map(lambda job: diagnose(*job), scripts):
            done.append(one)
            print(f"\r{len(done)} of {len(scripts)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    text = table(done)
    print(text)
    reports = {_name(d): _timeless(d.report) for d in done}
    if options.reports:
        options.reports.write_text(json.dumps(reports, indent=1), encoding="utf-8")
    if options.against:
        print("\n".join(_differences(json.loads(options.against.read_text("utf-8")), reports)))
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")


def _scripts() -> list[Path]:
    patterns = (
        "rules/*/*/bad*.py",
        "rules/*/*/good*.py",
        "loops/*/*.py",
        "contract/*/*.py",
        "fit/*/*.py",
        "healthy/**/*.py",
    )
    return sorted({p for pattern in patterns for p in find_scripts(TESTS, pattern)})


def _backends(script: Path) -> tuple[str, ...]:
    """Those of Keras to run a script on; one empty name where it does not use Keras."""
    text = write_script(script).read_text(encoding="utf-8")
    if not _IMPORTS_KERAS.search(text):
        return ("",)
    named = _WRITTEN_FOR.search(text)
    return tuple(named.group(1).split()) if named else BACKENDS


def diagnose(script: Path, backend: str = "") -> Diagnosis:
    """Check one script in a process of its own."""
    planted = tuple(_planted(script))
    started = time.monotonic()
    command = [sys.executable, "-m", "trainwright", "check", "--json", "-", str(write_script(script))]
    environment = ENVIRONMENT | ({"KERAS_BACKEND": backend} if backend else {})
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    seconds = time.monotonic() - started
    try:
        report = json.loads(ended.stdout)
    except json.JSONDecodeError:
        said = ended.stderr.strip()[-200:]
        return Diagnosis(
            script,
            f"keras on {backend}" if backend else "none",
            planted,
            0,
            False,
            (),
            0.0,
            seconds,
            f"no report: {said}",
        )
    loud = [f for f in report["findings"] if f["severity"] != "note"]
    names = {name for name, _ in planted}
    notes = {f["name"] for f in report["findings"]} if any(_is_note(n) for n in names) else set()
    first = report["first_cause"] or next(iter(report["findings"]), None) or {"name": None, "where": None}
    where = (first["name"], (first["where"] or {}).get("line"))
    return Diagnosis(
        script=script,
        framework=f"keras on {backend}" if backend else report["framework"] or "no training reached",
        planted=planted,
        named=len(names & ({f["name"] for f in loud} | notes)),
        first=where in planted,
        extra=tuple(f["name"] for f in loud if f["name"] not in names),
        check_seconds=report["seconds"],
        process_seconds=seconds,
        remark="" if planted or not ended.returncode else f"exit status {ended.returncode}",
        report=report,
    )


def _timeless(value: Any) -> Any:
    """A report without its seconds, in its fields and in its sentences, and without the checkout's path."""
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if not k.endswith("seconds")}
    if isinstance(value, list):
        return [_timeless(v) for v in value]
    return _SECONDS.sub("- s", value).replace(f"{ROOT}/", "") if isinstance(value, str) else value


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """A line for each report that is not as it was, and a diff of the two below it."""
    shared = [name for name in now if name in before]
    changed = [name for name in shared if now[name] != before[name]]
    yield f"{len(shared) - len(changed)} of {len(shared)} reports are as they were."
    for name in changed:
        texts = [json.dumps(one[name], indent=1).splitlines() for one in (before, now)]
        yield f"- {name}"
        yield from (f"    {line}" for line in difflib.unified_diff(*texts, lineterm="", n=0))


def _is_note(name: str) -> bool:
    """Whether some of a rule's findings may be notes: between its declaration and the next one stands the word."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src/trainwright/rules").rglob("*.py"))
    declared = (part for text in texts for part in text.split("\n@rule("))
    return any("Severity.NOTE" in part for part in declared if f"\ndef {name.replace('-', '_')}(" in part)


def _planted(script: Path) -> list[tuple[str, int]]:
    lines = write_script(script).read_text(encoding="utf-8").split("\n")
    return [(m.group(1), i) for i, line in enumerate(lines, 1) if (m := _EXPECTED.search(line))]


def table(done: list[Diagnosis]) -> str:
    """The table in Markdown, with what did not go as it should below it."""
    tallies: dict[str, Tally] = collections.defaultdict(Tally)
    for one in done:
        tallies[one.framework].all.append(one)
    lines = [
        "# What is found, and how fast",
        "",
        f"`benchmarks/diagnosis.py` on {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"OMP_NUM_THREADS={ENVIRONMENT['OMP_NUM_THREADS']}, Python {sys.version.split()[0]}, "
        + ", ".join(
            f"{p} {_version(p)}"
            for p in ("torch", "transformers", "accelerate", "lightning", "keras", "tensorflow-cpu", "jax")
        )
        + ". One process per script in `tests/`; seconds are median / slowest.",
        "",
        "| framework | planted faults named | correct first cause and line | other findings | false alarms | check s | process s |",
        "|---|---|---|---|---|---|---|",
        *(tally.row(name) for name, tally in sorted(tallies.items())),
        Tally(done).row("all"),
        "",
    ]
    lines += [f"- {shown}" for d in done if (shown := _remark(d))]
    return "\n".join(lines)


def _name(one: Diagnosis) -> str:
    name = str(one.script.relative_to(TESTS))
    return f"{name} ({one.framework})" if "keras on" in one.framework else name


def _remark(one: Diagnosis) -> str:
    name = _name(one)
    if one.remark:
        return f"{name}: {one.remark}"
    if one.planted and not one.first:
        return f"{name}: wrong first cause or line; named {one.named} of {len(one.planted)}, also {', '.join(one.extra) or 'nothing'}"
    if one.extra:
        return f"{name}: also {', '.join(one.extra)}"
    return ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} / {max(seconds):.1f}" if seconds else ""


if __name__ == "__main__":
    main()
