"""TW211 tokens-beyond-vocabulary: a token id is too large for the model's embedding.

Why it matters: The lookup stops with an index error that names neither the token nor the table; on a GPU, with a
device-side assert far from its cause. It happens only at the first batch with such a token.
Evidence: The largest id in the data set compared with the number of rows of the embedding.
Error: `index out of range in self`
Error: `device-side assert triggered`
Error: `indices[…] = … is not in [0, …)`
Fix (safe): Give the embedding as many rows as the tokenizer has tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Fate, Finding, Fix, Place, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, ForwardFacts, SetupFacts


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
    seen = [int(v) for v in (column.maximum if column else None, _largest(batch, forward)) if v is not None]
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
        fix=Fix(
            does=f"call model.resize_token_embeddings({count})"
            if not name or (setup.loads_checkpoint and not batch.embedding)
            else f"give the embedding {needed} rows ({'input_dim' if batch.embedding else 'vocab_size'}={count})",
            safety=Safety.SAFE,
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


def _largest(batch: BatchFacts, forward: ForwardFacts | None) -> float | None:
    if batch.vocabulary is None and forward and forward.failed_module and forward.failed_module.inputs:
        return forward.failed_module.inputs[0].maximum
    return batch.largest_token


def _resize(rows: int, name: str) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.resize_embeddings(call["model"], rows, name)
        return call

    return Repair(f"give the embedding {rows} rows", Seam.TRAINER, change)
