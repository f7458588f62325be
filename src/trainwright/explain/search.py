"""Finds rules by name, code or word."""

from __future__ import annotations

import difflib
import re

from trainwright.core.rule import Rule, load_rules


def find(name: str) -> Rule | None:
    """The rule of this name or code."""
    wanted = name.strip().lower()
    return next((r for r in load_rules() if wanted in (r.name, r.code.lower())), None)


# A longer question is treated as an error message, in which single words say little.
MOST_WORDS = 4
# The score of a word in a rule's name, title or page; a second mention in the page counts again, a third does not.
IN_NAME, IN_TITLE, IN_PAGE = 8, 4, 1


def mentioning(text: str) -> list[Rule]:
    """Rules that mention every word of a question; rules with the words in their names come first."""
    words = re.findall(r"\w+", text.lower())
    if not 0 < len(words) <= MOST_WORDS:
        return []
    patterns = [re.compile(rf"\b{re.escape(re.sub('(?<!s)s$', '', word))}") for word in words]
    scores = {rule.code: [_score(rule, pattern) for pattern in patterns] for rule in load_rules()}
    found = [rule for rule in load_rules() if all(scores[rule.code])]
    return sorted(found, key=lambda rule: -sum(scores[rule.code]))


def _score(rule: Rule, pattern: re.Pattern[str]) -> int:
    named = pattern.search(f"{rule.code} {rule.name}".lower()) is not None
    titled = pattern.search(rule.title.lower()) is not None
    mentions = len(pattern.findall(rule.page.lower()))
    return IN_NAME * named + IN_TITLE * titled + IN_PAGE * min(mentions, 2)


def near(text: str) -> list[str]:
    """Names of rules with a similar spelling."""
    wanted = "-".join(re.findall(r"\w+", text.lower()))
    return difflib.get_close_matches(wanted, [r.name for r in load_rules()], cutoff=0.7)


# Words of at least four letters that say nothing of a fault.
_FILLERS = frozenset(
    {"after", "does", "during", "error", "from", "have", "into", "model", "only", "same", "script", "that", "this", "train",
     "training", "what", "when", "with", "wrong"}
)  # fmt: skip
MOST_CLOSEST = 4
# A longer text is a log, which shares words with every rule.
MOST_WORDS_OF_A_SENTENCE = 40


def closest(text: str) -> list[Rule]:
    """Rules whose names and titles share at least two words with a sentence, those with the most first."""
    words = {re.sub("(?<!s)s$", "", word) for word in re.findall(r"[a-z]{4,}", text.lower()) if word not in _FILLERS}
    if len(text.split()) > MOST_WORDS_OF_A_SENTENCE:
        return []
    shared = {rule.code: _shared(rule, words) for rule in load_rules()}
    found = [rule for rule in load_rules() if shared[rule.code] >= 2]
    return sorted(found, key=lambda rule: -shared[rule.code])[:MOST_CLOSEST]


def _shared(rule: Rule, words: set[str]) -> int:
    named = f"{rule.name} {rule.title}".lower()
    return sum(re.search(rf"\b{re.escape(word)}", named) is not None for word in words)
