"""A language model is trained on the beginnings of its texts only."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, ForwardFacts, SetupFacts

# Half of the tokens: documents of very different lengths may lose some at a generous length, too. A note says so; of
# texts that are several times as long as a row, a warning.
MOST_LOST, NEARLY_ALL = 0.5, 0.8


@rule("TW328", Severity.WARNING, raises=False)
def cut_off_texts(
    dataset: DatasetFacts, batch: BatchFacts, forward: ForwardFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """Truncation that throws away more than half of the tokens of a language model's texts."""
    cut = dataset.cut_texts
    is_next_token = forward.predicts_next_token or any(m.equals_inputs or m.shifted_by_one for m in batch.masks)
    if cut is None or cut.lost_share <= MOST_LOST or not is_next_token:
        return
    yield Finding(
        severity=Severity.WARNING if cut.lost_share > NEARLY_ALL else Severity.NOTE,
        message=f"truncation throws away {cut.lost_share:.0%} of the tokens: {cut.rows:,} texts become {cut.rows:,} rows of at "
        f"most {cut.longest:,} tokens, and would fill some {cut.pieces:,}",
        measured={"lost_share": round(cut.lost_share, 3), "rows": cut.rows, "rows_possible": cut.pieces},
        where=cut.where or setup.place(Role.MAX_LENGTH, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(f"{cut.cut} of {cut.compared} sampled rows are cut-off parts of the texts in {cut.expression}"),
        fix=Fix(
            does="pass return_overflowing_tokens=True to the tokenizer and keep each piece as a row (map with "
            "remove_columns=), or join the texts and cut them into blocks"
        ),
    )
