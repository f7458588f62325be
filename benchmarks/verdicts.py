"""Check the sound scripts of the tests, and print how many verdicts of each kind there are, and the seconds of a check.

    .venv/bin/python benchmarks/verdicts.py [--jobs N] [--json FILE] [WORDS...]

A sound script of ordinary size should be shown to learn within the default budget; none may get "does not learn" or
"broken". Only scripts whose path contains one of the words are checked, all of them without any.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
SCRIPTS = [*(TESTS / "healthy").rglob("*.py")]
LIMIT_SECONDS = 300


def main() -> None:
    """Check them, and print a line for each script that was not shown to learn, and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    chosen = sorted(s for s in SCRIPTS if not options.words or any(w in str(s) for w in options.words))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        reports = dict(zip(chosen, pool.map(_report, chosen)))
    counts: collections.Counter[str] = collections.Counter()
    seconds = []
    for script, report in reports.items():
        verdict = (report or {}).get("verdict") or {"shown": "no report", "why": ""}
        counts[verdict["shown"]] += 1
        seconds += [report["seconds"]] if report else []
        if verdict["shown"] != "learns":
            print(f"{script.relative_to(TESTS)}: {verdict['shown']}: {verdict['why']}")
    print(f"\n{len(chosen)} sound scripts: {', '.join(f'{n} {name}' for name, n in counts.most_common())}")
    if seconds:
        print(f"check: {statistics.median(seconds):.1f} s in the median, {max(seconds):.1f} s the longest")
    if options.json:
        options.json.write_text(
            json.dumps({str(s.relative_to(TESTS)): r for s, r in reports.items()}), encoding="utf-8"
        )


def _report(script: Path) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "report.json"
        command = [sys.executable, "-m", "trainwright", "check", "--json", str(written), str(script)]
        paths = os.pathsep.join((str(TESTS / "helpers"), os.environ.get("PYTHONPATH", "")))
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        if backends := re.search(r"^# backends: (\w+)", script.read_text(encoding="utf-8"), re.MULTILINE):
            environment["KERAS_BACKEND"] = backends[1]
        try:
            subprocess.run(command, env=environment, capture_output=True, timeout=LIMIT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
        return json.loads(written.read_text(encoding="utf-8")) if written.exists() else None


if __name__ == "__main__":
    main()
