"""Check the programs of blind authors, and print how many faults were named and how many sound ones were left in peace.

    .venv/bin/python -m exam.blind [--jobs N] [--json FILE] [AUTHOR...]

An author who has read neither the rules nor the tests writes a folder of exam/blind with an answers.json: a list of
objects with `script`, `faulty`, `framework`, `line`, `fault` and `effect`, and for a faulty one `fixed`: the name of the same
program without the fault, which is checked as a sound one and kept in fixed.patch (exam/patches.py). Before the first check
somebody who knows the rules adds `named`: the rules that would be right about the fault, none where no rule claims it. The
first score is published in docs/diagnosis.md before anything is changed because of it; after that the programs measure
nothing new, and guard.
"""

import argparse
import concurrent.futures
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exam.checks import Marks, Verdict, check_program, judge
from exam.patches import patches
from exam.programs import EXAM, Program

FOLDER = EXAM / "blind"


def main() -> None:
    """Check them all and print a line for each, and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("author", nargs="*", help="folders of exam/blind; all of them without one")
    parser.add_argument("--jobs", type=int, default=1, help="how many checks run at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all answers to this file")
    options = parser.parse_args()
    folders = [FOLDER / a for a in options.author] or sorted(p.parent for p in FOLDER.glob("*/answers.json"))
    asked = [(f, *asked) for f in folders for asked in _asked(f)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda job: check_program(job[2], job[3]), asked))
    done = [(f.name, one, v, _marks(one, v)) for (f, one, _, _), v in zip(asked, verdicts)]
    print("\n".join(_line(*entry) for entry in done))
    print("\n" + _table([(one, v, m) for _, one, v, m in done]))
    if options.json:
        kept = [{"author": a, **one, "verdict": asdict(v), "marks": asdict(m)} for a, one, v, m in done]
        options.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _asked(folder: Path) -> list[tuple[dict[str, Any], Program, str]]:
    """The author's programs, and the faulty ones without their faults, each with its text."""
    written = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    programs = {
        one["script"]: Program(
            f"{folder.name}/{one['script']}", folder / one["script"], tuple(one.get("arguments", ()))
        )
        for one in written
    }
    fixed = [
        ({"script": patch.name, "faulty": False}, programs[patch.program], patch.text)
        for patch in patches(folder / "fixed.patch")
    ]
    return [*((one, programs[one["script"]], programs[one["script"]].source) for one in written), *fixed]


def _marks(one: dict[str, Any], verdict: Verdict) -> Marks:
    return judge(verdict, tuple(one.get("named", ())), (one["line"],) if one.get("line") else ())


def _line(author: str, one: dict[str, Any], verdict: Verdict, marks: Marks) -> str:
    said = ", ".join(f"{name}:{line}" for name, line in verdict.findings) or f"nothing, status {verdict.status}"
    if not one["faulty"]:
        how = "silent" if verdict.silent else "FALSE ALARM"
    elif marks.first:
        how = "first cause" + (", at its line" if marks.line else "")
    else:
        how = "named" if marks.named else "FALSE PASS" if marks.false_pass else "missed"
    return f"{author}/{one['script']}: {how} ({said}; {verdict.seconds:.0f} s) {one.get('fault', '')}".rstrip()


def _table(done: list[tuple[dict[str, Any], Verdict, Marks]]) -> str:
    faulty = [m for one, _, m in done if one["faulty"]]
    sound = [v for one, v, _ in done if not one["faulty"]]
    rows = (
        ("faults named", sum(m.named for m in faulty), len(faulty)),
        ("named as the first cause", sum(m.first for m in faulty), len(faulty)),
        ("at the author's line", sum(m.line for m in faulty), len(faulty)),
        ("another first cause", sum(m.wrong or m.elsewhere for m in faulty), len(faulty)),
        ("false passes", sum(m.false_pass for m in faulty), len(faulty)),
        ("false alarms on sound programs", sum(not v.silent for v in sound), len(sound)),
    )
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {count} of {total} |" for name, count, total in rows)])


if __name__ == "__main__":
    main()
