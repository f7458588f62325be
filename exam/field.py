"""The field exam: sound programs with one drawn fault each, run for real and then checked as a user would.

    .venv/bin/python -m exam.field [--seed today] [--faulty 240] [--sound 60] [--jobs 2] [--json FILE]
        [--against FILE] [--failures DIR] [--operator NAME] [--program REGEX] [--minutes M] [--prepare] [--list]
        [--names FILE] [--own]

A question is a program of ours (tests/healthy, exam/idioms) or of another author's package, one of the operators in
exam/operators, and a place where the operator applies, drawn by the seed. A fault counts only if it bites: the program,
rehearsed, raises or ends worse than in three sound runs (exam/oracle.py). Then `trainwright check` checks it with its default
budget. The table says, by operator, by framework and by kind (crash, silent): faults named, named as the first cause, at the
line of the change; a first cause that is another one; and false passes: nothing found, exit status 0. Sound programs that
are drawn show false alarms.

The other authors' packages are fetched into .field by pip, once; --own does without them. Real runs are cached in .field
by what they run. `--prepare` runs the sound programs and stops. `--seed today` is a new exam each day; the seed is in the
table's title, so an exam can be repeated. `--failures DIR` writes what was missed as scripts that can be run.
`--names FILE` adds what the variables of the programs held to a JSON file: the operators' tests read it.
"""

import argparse
import collections
import concurrent.futures
import datetime
import itertools
import json
import os
import random
import re
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exam import oracle
from exam.checks import Marks, Verdict, check_program, judge
from exam.draw import Question, names_of, questions
from exam.operators import OPERATORS
from exam.programs import Program, programs

_STREAMS = 12


@dataclass(frozen=True)
class Answer:
    """One question and what the check made of it."""

    program: str
    framework: str
    operator: str  # empty for a sound program
    family: str
    change: str
    line: int | None
    kind: str  # crash, silent or sound
    because: str
    verdict: Verdict
    marks: Marks | None
    source: str

    @property
    def alarm(self) -> bool:
        """Whether a sound program was not left in peace."""
        return self.kind == "sound" and not self.verdict.silent


def main() -> None:
    """Hold an exam and print its table."""
    options = _options()
    chosen = [p for p in programs(others=not options.own) if re.search(options.program, p.name)]
    names = [n for n in sorted(OPERATORS) if options.operator in n]
    if options.list:
        print("\n".join(f"{n:34} {o.family:12} {o.fault}" for n, o in sorted(OPERATORS.items())))
        return
    if options.names:
        held = json.loads(options.names.read_text("utf-8")) if options.names.exists() else {}
        held |= {p.name: names_of(p) for p in chosen}
        options.names.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    if options.prepare:
        _prepare(random.Random(options.seed).sample(chosen, len(chosen)), options.jobs)
        return
    seed = f"{datetime.date.today()}" if options.seed == "today" else options.seed
    ends = time.monotonic() + 60 * options.minutes
    answers = list(_answers(seed, chosen, names, options, ends))
    text = table(answers, seed)
    print(text)
    if options.json:
        kept = [asdict(a) for a in answers]
        options.json.write_text(json.dumps({"seed": seed, "answers": kept}, indent=1), encoding="utf-8")
    if options.against:
        print("\n".join(differences(json.loads(options.against.read_text("utf-8"))["answers"], answers)))
    if options.failures:
        _write_failures(answers, options.failures)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="today", help="what the exam is drawn by")
    parser.add_argument("--faulty", type=int, default=240, help="programs with a fault")
    parser.add_argument("--sound", type=int, default=60, help="programs without one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--minutes", type=float, default=120, help="no question is begun after this time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all answers to this file")
    parser.add_argument("--against", type=Path, metavar="FILE", help="print what differs from such a file")
    parser.add_argument("--failures", type=Path, metavar="DIR", help="write missed faults and false alarms as scripts")
    parser.add_argument("--operator", default="", help="part of the operators' names")
    parser.add_argument("--program", default="", help="a regular expression for the programs' names")
    parser.add_argument("--own", action="store_true", help="our own programs alone; nothing is fetched")
    parser.add_argument("--prepare", action="store_true", help="run the sound programs with three seeds, and stop")
    parser.add_argument("--names", type=Path, metavar="FILE", help="write what the programs' variables held, and stop")
    parser.add_argument("--list", action="store_true", help="print the operators, and stop")
    return parser.parse_args()


def _prepare(chosen: list[Program], jobs: int) -> None:
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, runs in zip(chosen, pool.map(oracle.sound_runs, chosen)):
            print(f"{program.name}: {_ended(runs)}", flush=True)


def _ended(runs: list[oracle.Run] | None) -> str:
    if runs is None:
        return "does not end well by itself; left out"
    names = [m.name for m in runs[0].measures]
    return f"{statistics.mean(r.seconds for r in runs):.0f} s, {', '.join(names) or 'no number'}"


def _answers(
    seed: str, chosen: list[Program], names: list[str], options: argparse.Namespace, ends: float
) -> Iterator[Answer]:
    chance = random.Random(f"sound {seed}")
    sound = [Question(p, p.source) for p in chance.sample(chosen, min(options.sound, len(chosen)))]
    # Each stream has operators of its own, so that an exam is the same whatever the number of workers.
    dealt = random.Random(f"operators {seed}").sample(names, len(names))
    count = max(1, min(_STREAMS, len(dealt), options.faulty))
    shares = [len(range(i, options.faulty, count)) for i in range(count)]
    streams = [
        itertools.islice(questions(f"{seed} {i}", chosen, dealt[i::count]), share) for i, share in enumerate(shares)
    ]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        lock, done = threading.Lock(), collections.Counter[str]()

        def work(stream: Iterable[Question]) -> list[Answer]:
            answers = []
            for question in stream:
                if time.monotonic() > ends:
                    break
                answers.append(answer(question))
                with lock:
                    done[_told(answers[-1])] += 1
                    print(f"\r{sum(done.values())}: {dict(done)}   ", end="", file=sys.stderr, flush=True)
            return answers

        for some in pool.map(work, [*streams, *([question] for question in sound)]):
            yield from some
    print(file=sys.stderr)


def answer(question: Question) -> Answer:
    """Check it, and mark the check."""
    verdict = check_program(question.program, question.source)
    operator, planted, bite = question.operator, question.planted, question.bite
    marks = None
    if operator and planted and bite:
        changed = range(planted.line, planted.line + planted.lines)
        lines = (*changed, *((bite.line,) if bite.line else ()))
        marks = judge(verdict, operator.named, lines)
    return Answer(
        program=question.program.name,
        framework=question.program.framework,
        operator=operator.name if operator else "",
        family=operator.family if operator else "",
        change=planted.change if planted else "",
        line=planted.line if planted else None,
        kind=bite.kind if bite else "sound",
        because=bite.because if bite else "",
        verdict=verdict,
        marks=marks,
        source=question.source,
    )


def _told(one: Answer) -> str:
    if one.marks is None:
        return "false alarm" if one.alarm else "sound"
    if one.marks.first:
        return "named first"
    return "named" if one.marks.named else "FALSE PASS" if one.marks.false_pass else "missed"


_HEAD = (
    "| {} | faults | named | named first | at its line | symptom first | another first cause | false pass | s |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def table(answers: list[Answer], seed: str) -> str:
    """The results in Markdown."""
    faulty = [a for a in answers if a.marks]
    sound = [a for a in answers if a.kind == "sound"]
    lines = [f"## Seed {seed}: {len(faulty)} faults that bite, {len(sound)} sound programs", ""]
    for title, key in (("kind", "kind"), ("framework", "framework"), ("family", "family"), ("operator", "operator")):
        lines += [_HEAD.format(title), *_rows(faulty, lambda a, key=key: getattr(a, key)), ""]  # type: ignore[misc]
    alarms = [a for a in sound if a.alarm]
    lines.append(f"False alarms: {len(alarms)} of {len(sound)} sound programs.")
    lines += [f"- {a.program}: {', '.join(n for n, _ in a.verdict.findings) or a.verdict.message}" for a in alarms]
    return "\n".join(lines)


def _rows(faulty: list[Answer], key: Callable[[Answer], str]) -> Iterator[str]:
    groups: dict[str, list[Answer]] = collections.defaultdict(list)
    for one in faulty:
        groups[key(one)].append(one)
    for name, group in [*sorted(groups.items()), ("all", faulty)]:
        marks = [a.marks for a in group if a.marks]
        counts = [
            len(group),
            sum(x.named for x in marks),
            sum(x.first for x in marks),
            sum(x.line for x in marks),
            sum(x.symptom for x in marks),
            sum(x.wrong or x.elsewhere for x in marks),
            sum(x.false_pass for x in marks),
        ]
        seconds = statistics.median(a.verdict.seconds for a in group) if group else 0.0
        yield f"| {name} | " + " | ".join(map(str, counts)) + f" | {seconds:.0f} |"


def differences(before: list[dict[str, Any]], now: list[Answer]) -> Iterator[str]:
    """A line for each question of both exams whose marks changed."""
    old = {one["source"]: one for one in before}
    shared = [a for a in now if a.source in old]
    yield f"{len(shared)} questions are in both exams."
    for one in shared:
        was, marks = old[one.source], asdict(one.marks) if one.marks else None
        if was["marks"] != marks or (
            marks is None and was["verdict"]["findings"] != [list(f) for f in one.verdict.findings]
        ):
            changed = [k for k in marks or {} if (was["marks"] or {}).get(k) != (marks or {})[k]]
            yield f"- {one.program}, {one.operator or 'sound'}: {', '.join(changed) or 'other findings'}"


def _write_failures(answers: list[Answer], folder: Path) -> None:
    """One script for each fault that was not the first cause, and for each false alarm, with what was said on top."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, one in enumerate(answers):
        if one.alarm or (one.marks and not one.marks.first):
            said = "; ".join(f"{n} (line {line})" for n, line in one.verdict.findings) or "nothing found"
            head = [
                f"# {_told(one)}: {one.operator or 'sound program'}, line {one.line}: {one.change}",
                f"# {one.kind}: {one.because}",
                f"# said (lines are without this head): {said}; status {one.verdict.status} {one.verdict.message}",
            ]
            stem = Path(one.program).stem
            text = "\n".join(" ".join(line.split()) for line in head)
            (folder / f"{i:03}_{one.operator or 'sound'}_{stem}.py").write_text(
                f"{text}\n{one.source}", encoding="utf-8"
            )


if __name__ == "__main__":
    main()
