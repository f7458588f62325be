"""Check unmodified training scripts of public repositories on stand-in data, and print the table of what was said.

    .venv/bin/python benchmarks/public_scripts.py FOLDER [WORDS...]     check those whose path contains one of the words
    .venv/bin/python benchmarks/public_scripts.py FOLDER --table        print the table of all that was checked before

FOLDER holds the repositories as FOLDER/owner/name; one that is not there is cloned. What the scripts would download is
made by `public_standins.py`, in FOLDER/made and beside the scripts. The reports are kept in FOLDER/made/reports.
The scripts need packages that a check does not: torchvision, gymnasium, tyro, pytorch-ignite, skorch, x-transformers.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from public_table import SCRIPTS, Script

ROOT = Path(__file__).resolve().parent.parent
LIMIT_SECONDS = 400
"""A check that takes longer hangs: its budget is 120 s, from the script's first step on."""


def main() -> None:
    """Check them one after the other, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    chosen = [s for s in SCRIPTS if not options.words or any(w in f"{s.repository}/{s.path}" for w in options.words)]
    for script in chosen if not options.table else []:
        _fetch(folder, script.repository)
        _check(folder, script)
        print(_row(folder, script), flush=True)
    if options.table:
        print("| script | arguments | verdict | seconds | what was found | exit status | right? |")
        print("|---|---|---|---|---|---|---|")
        print("\n".join(filter(None, (_row(folder, s) for s in chosen))))
        print(_counts(folder, chosen))


def _fetch(folder: Path, repository: str) -> None:
    if not (folder / repository).exists():
        address = f"https://github.com/{repository}"
        subprocess.run(["git", "clone", "--depth", "1", address, str(folder / repository)], check=True)


def _check(folder: Path, script: Script) -> None:
    made, checkout = folder / "made", folder / script.repository
    made.mkdir(exist_ok=True)
    if script.needs:
        script.needs(made, checkout)
    report = _report_of(folder, script)
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    file = checkout / script.path
    arguments = shlex.split(script.arguments.format(made=made))
    paths = [ROOT / "src", ROOT / "exam" / "made", ROOT / "benchmarks", *(checkout / p for p in script.packages)]
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(made / "hub"),
        "WANDB_MODE": "disabled", "TRACKIO_DIR": str(made / "trackio"), **script.environment,
        "PYTHONPATH": os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    command = [sys.executable, "-m", "trainwright", "check", "--json", str(report), str(file), *arguments]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=checkout / (script.folder.format(made=made) or Path(script.path).parent), env=environment, timeout=LIMIT_SECONDS,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        status, printed = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        status, printed = -1, f"not ended after {LIMIT_SECONDS} s\n{error.stdout!r}"
    content = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    content |= {"exit_status": status, "wall_seconds": time.monotonic() - began}
    report.write_text(json.dumps(content), encoding="utf-8")
    report.with_suffix(".txt").write_text(printed, encoding="utf-8")


def _report_of(folder: Path, script: Script) -> Path:
    name = f"{script.repository}/{script.path}".replace("/", "--").removesuffix(".py")
    return folder / "made" / "reports" / f"{name}{'-' if script.variant else ''}{script.variant}.json"


def _row(folder: Path, script: Script) -> str:
    report = _report_of(folder, script)
    if not report.exists():
        return ""
    content = json.loads(report.read_text(encoding="utf-8"))
    verdict = (content.get("verdict") or {}).get("shown", "none")
    found = [f"{f['name']} ({f['severity']})" for f in content.get("findings", ())]
    found += [f"internal error: {e.get('rule', e)}" for e in content.get("internal_errors", ())]
    address = f"https://github.com/{script.repository}/blob/HEAD/{script.path}"
    cells = (
        f"[{script.repository.split('/')[1]}/{script.path}]({address})",
        f"`{script.arguments.replace('{made}/', '')}`" if script.arguments else "",
        verdict,
        f"{content['wall_seconds']:.0f}",
        ", ".join(found) or "nothing",
        str(content["exit_status"]),
        script.judged,
    )
    return f"| {' | '.join(cells)} |"


def _counts(folder: Path, scripts: list[Script]) -> str:
    reports: list[dict[str, Any]] = [
        json.loads(_report_of(folder, s).read_text(encoding="utf-8")) for s in scripts if _report_of(folder, s).exists()
    ]
    shown = [(r.get("verdict") or {}).get("shown", "none") for r in reports]
    severities = [f["severity"] for r in reports for f in r.get("findings", ())]
    internal = sum(bool(r.get("internal_errors")) for r in reports)
    verdicts = ", ".join(f"{shown.count(v)} {v}" for v in sorted(set(shown)))
    kinds = ", ".join(f"{severities.count(s)} {s}" for s in sorted(set(severities)))
    return f"\n{len(reports)} scripts: {verdicts}. Findings: {kinds or 'none'}. With internal errors: {internal}."


if __name__ == "__main__":
    main()
