"""What people say of a training that raises nothing, and what they ask: patterns, a short answer, and the rules that look for it.

The tables are Markdown files, read as those of error messages are: an entry's wordings are regular expressions for the
text as `_plain` writes it, in which `<loss>`, `<score>` and the like stand for the words below.
"""

from __future__ import annotations

import re
from pathlib import Path

from trainwright.frameworks.messages.known import KnownMessage, read_entries

# A longer text is a log or a report, in which single words say little.
MOST_WORDS = 30
# Any other single word is searched for among the rules.
LONE_WORDS = ("tpu", "tpus")
# What `_plain` writes as "not".
_NEGATIONS = re.compile(
    r"n't\b|(?:\b(?:does|do|did|is|are|was|wo|ca))nt\b|\b(?:cannot|not|never|no longer|without)\b"
    r"|\b(?:refuses|fails|failed|stops|stopped)(?: to)?\b"
)
_WORDS = {
    "<falls>": r"(?:decreas|go(?:es|ing)? down|drop|fall|reduc|improv|converg|chang|mov)",
    "<loss>": r"\b(?:loss(?:es)?|cost|objective)\b",
    "<score>": r"\b(?:accuracy|acc|score|f1|auc|metrics?|performance)\b",
    "<evaluation>": r"\b(?:val|valid|validation|test|dev|eval|evaluation)(?![a-z])",
    "<memory>": r"(?:memory|v?ram)\b",
}


def _read(name: str) -> tuple[KnownMessage, ...]:
    return tuple(read_entries(name, Path(__file__).with_name(name).read_text("utf-8")))


# The more specific ones first: a loss that is NaN does not decrease either.
COMPLAINTS, QUESTIONS = _read("complaints.md"), _read("asked.md")


def complaint_of(text: str) -> KnownMessage | None:
    """The complaint that a short text expresses, or the question that it asks, if it is one of the tables."""
    said = _plain(text)
    words = len(said.split())
    if not 1 <= words <= MOST_WORDS:
        return None
    known = (*COMPLAINTS, *QUESTIONS) if words >= 2 or said.strip() in LONE_WORDS else QUESTIONS
    return next((one for one in known if any(re.search(_pattern(t), said) for t in one.texts)), None)


def _pattern(text: str) -> str:
    for name, words in _WORDS.items():
        text = text.replace(name, words)
    return text


def _plain(text: str) -> str:
    """A text in lower case, with every negation written "not"."""
    return " ".join(_NEGATIONS.sub(" not", text.lower().replace("’", "'")).split())
