"""Run every bad, good and healthy script as a user would, a process each, and print what was named.

    .venv/bin/python benchmarks/diagnosis.py [FILTER]

Columns: faults named at all, named first at the announced line, findings above a note on scripts that have no fault
(false alarms), and the seconds of the walk (the report's) and of the whole process, imports included.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT / "tests"),
    "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    "HF_HUB_OFFLINE": "1",
}


@dataclass
class Tally:
    """What was seen of one kind of script."""

    scripts: int = 0
    named: int = 0
    first: int = 0
    extra: int = 0
    walk_seconds: list[float] = field(default_factory=list)
    process_seconds: list[float] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def main() -> None:
    """Print the table, and a line for each script that did not go as it should."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    tests = ROOT / "tests"
    kinds = {
        "faulty": sorted(tests.glob("rules/*/*/bad*.py")),
        "mended": sorted(tests.glob("rules/*/*/good*.py")),
        "healthy": sorted(tests.glob("healthy/*.py")),
    }
    tallies = {kind: Tally() for kind in kinds}
    for kind, scripts in kinds.items():
        for script in scripts:
            if wanted in str(script):
                _one(script, tallies[kind], faulty=kind == "faulty")
    print(f"{'scripts':<10}{'count':>6}{'named':>7}{'first':>7}{'extra':>7}{'walk s':>16}{'process s':>16}")
    for kind, t in tallies.items():
        if t.scripts:
            named = (t.named, t.first) if kind == "faulty" else ("", "")
            print(f"{kind:<10}{t.scripts:>6}{named[0]:>7}{named[1]:>7}{t.extra:>7}"
                  f"{_spread(t.walk_seconds):>16}{_spread(t.process_seconds):>16}")  # fmt: skip
    print("seconds: median / slowest; extra: findings above a note besides the planted fault")
    for t in tallies.values():
        print("\n".join(t.remarks), end="\n" if t.remarks else "")


def _one(script: Path, tally: Tally, *, faulty: bool) -> None:
    started = time.monotonic()
    command = [sys.executable, "-m", "trainwright", "check", "--json", "-", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    tally.process_seconds.append(time.monotonic() - started)
    tally.scripts += 1
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        tally.remarks.append(f"{script}: no report: {done.stderr[-200:]}")
        return
    tally.walk_seconds.append(report["seconds"])
    loud = [f for f in report["findings"] if f["severity"] != "note"]
    if not faulty:
        tally.extra += len(loud)
        if loud or done.returncode:
            tally.remarks.append(f"{script}: {[f['name'] for f in loud]} status {done.returncode}")
        return
    name, line = _announced(script)
    first = report["first_cause"] or {"name": None, "where": None}
    right = first["name"] == name and (first["where"] or {}).get("line") == line
    tally.named += any(f["name"] == name for f in loud)
    tally.first += right
    tally.extra += sum(f["name"] != name for f in loud)
    if not right:
        tally.remarks.append(
            f"{script}: first cause {first['name']} at {first['where']}, announced line {line}"
        )


def _announced(script: Path) -> tuple[str, int]:
    for number, line in enumerate(script.read_text().split("\n"), 1):
        if found := re.search(r"#\s*expect:\s*([a-z-]+)", line):
            return found.group(1), number
    return script.parent.name.replace("_", "-"), 0


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} / {max(seconds):.1f}" if seconds else ""


if __name__ == "__main__":
    main()
