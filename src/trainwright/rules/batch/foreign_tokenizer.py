"""TW210 foreign-tokenizer: the token ids and the model come from different vocabularies.

Why it matters: Nothing fails, but every id stands for a different token than the one the weights were trained with.
Evidence: The ids as read by the script's tokenizer and by the checkpoint's own: they must survive decoding and
re-encoding, rows must begin as the tokenizer begins its texts, and an id must mean the same to both tokenizers.
Fix (manual): Tokenize with AutoTokenizer.from_pretrained of the model's own checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Place, Proof, Role, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, SetupFacts, VocabularyFacts

# Measured on tweets: of the tokenizer's own ids, 0.999 or more survive a round trip (WordPiece, byte-level BPE); of
# permuted ids from the same vocabulary 0.89-0.93; of ids from another vocabulary 0.08-0.81.
OWN = 0.97
NONSENSE = 0.85
# Nearly every row starts alike: with some tokenizer's start token, not with a word.
ALIKE = 0.95
# Two tokenizers that agree on less than half of the tokens are not versions of one.
SAME_FAMILY = 0.5


@rule("TW210", Severity.ERROR)
def foreign_tokenizer(batch: BatchFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Ids that mean nothing to the script's tokenizer, or something else to the checkpoint's own tokenizer."""
    facts = batch.vocabulary_facts
    if facts is None or not setup.loads_checkpoint or dataset.tokenizer is None:
        return
    if (facts.checkpoint_kept_share or 0.0) >= OWN * facts.faithful_share:  # they suit the model: all is well
        return
    name = dataset.tokenizer.expression or dataset.tokenizer.name
    fix = Fix(does="tokenize with AutoTokenizer.from_pretrained of the checkpoint that the model is loaded from")
    measured: dict[str, float | int | str] = {
        "kept_share": round(facts.kept_share, 3),
        "rows": facts.rows,
        "decoded": facts.sample,
    }
    share = facts.checkpoint_share
    if share is not None and share < SAME_FAMILY:
        yield Finding(
            message=f"{name} and the model come from different vocabularies: the checkpoint's own tokenizer reads "
            f"{share:.0%} of the tokens as {name} does",
            measured={**measured, "agreement": round(share, 3)},
            where=_tokenizer_place(setup),
            proof=Proof(
                f"{1 - share:.0%} of the tokens in {facts.rows} rows mean something else in {facts.checkpoint}"
            ),
            fix=fix,
        )
    elif why := _nonsense(facts):
        yield Finding(
            message=f"the token ids of the data set are not those of {name}: only {facts.kept_share:.1%} of them survive "
            f"decoding and re-encoding {facts.rows} rows{why}",
            measured=measured,
            where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER, Role.TRAIN_CALL),
            proof=Proof(f"of its own ids, {facts.faithful_share:.1%} survive; a row reads {facts.sample!r}"),
            fix=fix,
        )


def _nonsense(facts: VocabularyFacts) -> str:
    """Why the ids cannot be the tokenizer's, as the end of a sentence; empty if they may be."""
    framed = facts.framed and facts.first_share >= ALIKE and not facts.first_is_special
    if framed and facts.kept_share < OWN * facts.faithful_share:
        return f", and {facts.first_share:.0%} begin with a token that does not mark the beginning of a text in it"
    return ", which is nonsense" if facts.kept_share < NONSENSE * facts.faithful_share else ""


def _tokenizer_place(setup: SetupFacts) -> Place | None:
    return setup.place(Role.TOKENIZER, Role.TRAIN_DATASET_MADE, Role.MODEL, Role.TRAINER, Role.TRAIN_CALL)
