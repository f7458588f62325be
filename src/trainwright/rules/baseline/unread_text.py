"""TW910 unread-text: a column of texts never reaches the tokens that the model is given, and the training is not seen to learn.

Why it matters: What only that column tells cannot be learned: of a pair of sentences, how the one relates to the other.
Evidence: The tokens of the sampled rows, compared with each column of texts as the tokenizer splits it: one column's tokens are
there, of the other there is none. It is more than a note if all planned updates leave the held-out rows at a constant
prediction's loss, and if nothing in what the model is given tells the labels.
Fix (manual): Give the tokenizer this column as well: tokenizer(rows["premise"], rows["hypothesis"], …).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import DatasetFacts, LearningFacts, SetupFacts
from trainwright.stages.learning import POWER


@rule("TW910", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def unread_text(learning: LearningFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Texts that nobody tokenized, beside texts that somebody did."""
    texts, found, last = dataset.texts, learning.information, learning.last
    if texts is None or not texts.unread or learning.shown:
        return
    is_silent = found is not None and found.given.silent and found.power >= POWER
    is_sure = is_silent and learning.had_its_chance and learning.held_at_constant
    unread, read = (", ".join(names) for names in (texts.unread, texts.read))
    updates = f", and {last.updates:,} updates teach the model nothing of other rows" if is_sure and last else ""
    yield Finding(
        severity=Severity.WARNING if is_sure else Severity.NOTE,
        message=f"the texts of {unread} never reach the model: its tokens hold those of {read} alone{updates}",
        measured={"rows": texts.rows, "unread": len(texts.unread), "read": len(texts.read)},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER) or dataset.label_place,
        proof=Proof(f"the tokens of {texts.rows:,} rows, beside those of each column of texts") if is_sure else None,
        fix=Fix(does=f"if the label depends on it, give the tokenizer {unread} as well as {read}"),
    )
