"""Token ids, and the vocabulary that they come from."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Place, Proof, Repair, Role, Severity, rule
from trainwright.rules.fixes import safe
from trainwright.rules.repairs import on_model
from trainwright.stages import BatchFacts, DatasetFacts, ForwardFacts, SetupFacts, VocabularyFacts

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
            where=setup.place(Role.TOKENIZER, Role.TRAIN_DATASET_MADE, Role.MODEL, Role.TRAINER, Role.TRAIN_CALL),
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


@rule("TW211", Severity.ERROR, foretells=Fate.STOPS)
def tokens_beyond_vocabulary(
    batch: BatchFacts, setup: SetupFacts, dataset: DatasetFacts | None, forward: ForwardFacts | None
) -> Iterator[Finding]:
    """Ids for which the embedding has no row."""
    table = _table(batch, forward)
    if table is None:
        return
    rows, name, place = table
    column = dataset.train.column(batch.token_key) if dataset else None
    seen = [int(v) for v in (column.maximum if column else None, _largest_id(batch, forward)) if v is not None]
    if not seen or max(seen) < rows:
        return
    largest, size = max(seen), batch.tokenizer_size or 0
    needed = size if size > largest else largest + 1
    has = f", and the tokenizer has {size} tokens" if size else ""
    count = "len(tokenizer)" if size > largest else str(needed)
    yield Finding(
        message=f"token ids go up to {largest}; the model's embedding has {rows} rows, for ids up to {rows - 1}{has}",
        measured={"largest_token": largest, "embedding_rows": rows, "needed_rows": needed},
        where=place or setup.place(Role.MODEL, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"id {largest} has no row among {rows}"),
        repair=_resize(needed, name),
        fix=safe(
            f"call model.resize_token_embeddings({count})"
            if not name or (setup.loads_checkpoint and not batch.embedding)
            else f"give the embedding {needed} rows ({'input_dim' if batch.embedding else 'vocab_size'}={count})"
        ),
    )


def _table(batch: BatchFacts, forward: ForwardFacts | None) -> tuple[int, str, Place | None] | None:
    """Rows, module name and place of the token embedding: the model's, or the one that failed."""
    if batch.vocabulary is not None:
        return (
            batch.vocabulary,
            batch.embedding,
            forward.place_of(batch.embedding) if forward and batch.embedding else None,
        )
    failed = forward.failed_module if forward else None
    if failed is None or failed.kind != "Embedding" or not failed.sizes or not failed.inputs:
        return None
    given = failed.inputs[0]
    from_batch = any(t.shape == given.shape and t.maximum == given.maximum for t in batch.tensors.values())
    return (failed.sizes[0], failed.name, failed.where) if from_batch else None


def _largest_id(batch: BatchFacts, forward: ForwardFacts | None) -> float | None:
    if batch.vocabulary is None and forward and forward.failed_module and forward.failed_module.inputs:
        return forward.failed_module.inputs[0].maximum
    return batch.largest_token


def _resize(rows: int, name: str) -> Repair:
    return on_model(
        f"give the embedding {rows} rows", lambda tensors, model: tensors.resize_embeddings(model, rows, name)
    )
