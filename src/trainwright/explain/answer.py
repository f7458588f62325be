"""The answer of `trainwright explain`: a rule's page, what is known of a message or traceback, or rules for a complaint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from trainwright.core import Rule
from trainwright.explain.complaints import complaint_of
from trainwright.explain.pasted import Frame, Raised, find_raised, users_frame
from trainwright.explain.shown import page, table, titles
from trainwright.frameworks.messages import Match, matches
from trainwright.frameworks.messages.known import KnownMessage
from trainwright.registry import load_rules, quoting

# Pages and paragraphs of one answer; further rules are only named.
HANDFUL = 5
# A text without an exception is searched line by line if it is longer: a quotation must not start in one message and
# end in another.
MOST_LINES_OF_A_MESSAGE = 10
# Of a longer text, the end is searched.
LAST_LINES = 500


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A rule or an entry of the table that quotes a message."""

    what: Rule | KnownMessage
    text: str = ""
    """The wording of an entry that was found."""
    wraps: bool = False
    """It quotes the part of a message that only passes on another one."""
    length: int
    """How many fixed characters it quotes."""


def explain(text: str) -> tuple[bool, RenderableType]:
    """Whether anything was found, and what to show."""
    if one := find(text):
        return True, page(one)
    found = find_raised(text)
    if hits := rank_quotes(text, found):
        return True, Group(*_place(users_frame(found)), *_answer(hits))
    if found:
        return False, Group(*_place(users_frame(found)), _unknown_error(found[-1]))
    if complaint := complaint_of(text):
        return True, _complained(complaint)
    mentions = mentioning(text)
    if mentions:
        return True, page(mentions[0]) if len(mentions) == 1 else _listed(text, mentions)
    return False, _unknown(text)


def rank_quotes(text: str, found: list[Raised]) -> list[Hit]:
    """What quotes a text or the exceptions in it, the most specific first."""
    hits: list[Hit] = []
    if found:
        for one in found:
            hits += _entries(matches(one.type, one.message)[:1])
            hits += _rules(one.text)
    else:
        lines = text.split("\n")
        for part in [text] if len(lines) <= MOST_LINES_OF_A_MESSAGE else lines[-LAST_LINES:]:
            hits += _entries(matches("", part)[:1])
            hits += _rules(part)
    hits.sort(key=lambda hit: (hit.wraps, -hit.length))
    return [hit for i, hit in enumerate(hits) if all(hit.what is not other.what for other in hits[:i])]


def _entries(found: Iterable[Match]) -> list[Hit]:
    return [Hit(what=one.known, text=one.text, wraps=one.known.wraps, length=one.score) for one in found]


def _rules(text: str) -> list[Hit]:
    return [Hit(what=rule, length=length) for length, rule in quoting(text)]


def _place(frame: Frame | None) -> list[RenderableType]:
    if frame is None:
        return []
    line = Text.assemble("Raised from ", (f"{frame.file}:{frame.line}", "bold"))
    return [line, *([Padding(Text(frame.code), (0, 0, 0, 4))] if frame.code else []), Text()]


def _answer(hits: list[Hit]) -> list[RenderableType]:
    shown, further = hits[:HANDFUL], [hit.what for hit in hits[HANDFUL:] if isinstance(hit.what, Rule)]
    pages = {hit.what.name for hit in shown if isinstance(hit.what, Rule)}
    parts: list[RenderableType] = []
    for hit in shown:
        parts += [page(hit.what)] if isinstance(hit.what, Rule) else _entry(hit.what, hit.text, without=pages)
    return [*parts, *([Text("These rules quote it, too:"), titles(further)] if further else [])]


def _entry(known: KnownMessage, text: str, without: set[str]) -> list[RenderableType]:
    rules = _named(name for name in known.rules if name not in without)
    head = [Text(text, style="bold"), Text(known.paragraph), Text()]
    return [*head, *([Text("Rules that look for such a fault:"), titles(rules), Text()] if rules else [])]


def _complained(complaint: KnownMessage) -> RenderableType:
    if not complaint.rules:
        return Text(complaint.paragraph)
    head = Text(f"{complaint.paragraph} `trainwright check SCRIPT` looks for these faults, among others:")
    tail = Text("`trainwright explain NAME` prints a rule's page.")
    return Group(head, Text(), titles(_named(complaint.rules)), Text(), tail)


def _named(names: Iterable[str]) -> list[Rule]:
    rules = {rule.name: rule for rule in load_rules()}
    return [rules[name] for name in names]


def _listed(text: str, rules: list[Rule]) -> RenderableType:
    head = Text.assemble(
        f"{len(rules)} rules mention ", (text.strip(), "bold"), "; `trainwright explain NAME` prints a rule's page."
    )
    return Group(head, Text(), table(rules))


def _unknown_error(one: Raised) -> Text:
    name = f"this {one.type.rpartition('.')[2]}" if one.type else "this traceback, which ends before its exception"
    return Text(
        f"No rule and no entry of the table of messages quotes {name}. `trainwright check SCRIPT` runs the script up to "
        "its training, and names the cause if it can prove one."
    )


def _unknown(text: str) -> RenderableType:
    alike = near(text)
    meant = f" Did you mean {', '.join(alike)}?" if alike else ""
    told = Text(
        f"No rule has this name, mentions it or quotes it as an error.{meant} `trainwright rules` lists all rules; "
        "`trainwright check SCRIPT` searches for the cause."
    )
    rules = closest(text)
    return Group(told, Text(), Text("These rules share words with it:"), titles(rules)) if rules else told


def find(name: str) -> Rule | None:
    """The rule of this name or code."""
    wanted = name.strip().lower()
    return next((r for r in load_rules() if wanted in (r.name, r.code.lower())), None)


# A longer question is treated as an error message, in which single words say little.
_MOST_WORDS = 4
# The score of a word in a rule's name, title or page; a second mention in the page counts again, a third does not.
_IN_NAME, _IN_TITLE, _IN_PAGE = 8, 4, 1


def mentioning(text: str) -> list[Rule]:
    """Rules that mention every word of a question; rules with the words in their names come first."""
    words = re.findall(r"\w+", text.lower())
    if not 0 < len(words) <= _MOST_WORDS:
        return []
    patterns = [re.compile(rf"\b{re.escape(re.sub('(?<!s)s$', '', word))}") for word in words]
    scores = {rule.code: [_score(rule, pattern) for pattern in patterns] for rule in load_rules()}
    found = [rule for rule in load_rules() if all(scores[rule.code])]
    return sorted(found, key=lambda rule: -sum(scores[rule.code]))


def _score(rule: Rule, pattern: re.Pattern[str]) -> int:
    named = pattern.search(f"{rule.code} {rule.name}".lower()) is not None
    titled = pattern.search(rule.title.lower()) is not None
    mentions = len(pattern.findall(rule.page.lower()))
    return _IN_NAME * named + _IN_TITLE * titled + _IN_PAGE * min(mentions, 2)


def near(text: str) -> list[str]:
    """Names of rules with a similar spelling."""
    wanted = "-".join(re.findall(r"\w+", text.lower()))
    return difflib.get_close_matches(wanted, [r.name for r in load_rules()], cutoff=0.7)


# Words of at least four letters that say nothing of a fault.
_FILLERS = frozenset(
    {"after", "does", "during", "error", "from", "have", "into", "model", "only", "same", "script", "that", "this", "train",
     "training", "what", "when", "with", "wrong"}
)  # fmt: skip
_MOST_CLOSEST = 4
# A longer text is a log, which shares words with every rule.
_MOST_WORDS_OF_A_SENTENCE = 40


def closest(text: str) -> list[Rule]:
    """Rules whose names and titles share at least two words with a sentence, those with the most first."""
    words = {re.sub("(?<!s)s$", "", word) for word in re.findall(r"[a-z]{4,}", text.lower()) if word not in _FILLERS}
    if len(text.split()) > _MOST_WORDS_OF_A_SENTENCE:
        return []
    shared = {rule.code: _shared(rule, words) for rule in load_rules()}
    found = [rule for rule in load_rules() if shared[rule.code] >= 2]
    return sorted(found, key=lambda rule: -shared[rule.code])[:_MOST_CLOSEST]


def _shared(rule: Rule, words: set[str]) -> int:
    named = f"{rule.name} {rule.title}".lower()
    return sum(re.search(rf"\b{re.escape(word)}", named) is not None for word in words)
