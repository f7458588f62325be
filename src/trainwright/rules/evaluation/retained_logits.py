"""TW708 retained-logits: the evaluation keeps all scores of all rows, or every graph, and they do not fit in memory.

Why it matters: The run is killed during its first evaluation, often without a message.
Evidence: The number of rows times the scores per row times their size in bytes, compared with the machine's memory. In
a loop: the graphs of evaluated batches that are still held when a pass ends, and when a longer one does (a note if they
fit in memory).
Fix (manual): Keep only what the metrics need: use preprocess_logits_for_metrics or prediction_loss_only. In a loop:
evaluate under torch.no_grad(), or accumulate .item().
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import EvaluationFacts, SetupFacts

# Joining the parts at the end needs a second copy, so at most half of the memory can be used.
MOST_SHARE = 0.5
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4}
GIB = 2**30


@rule("TW708", Severity.ERROR)
def retained_logits(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Predictions of the whole evaluation set that need more than half of the memory."""
    rows, memory = evaluation.rows, evaluation.memory_bytes
    if not evaluation.keeps_predictions or not rows or not memory:
        return
    row_bytes = sum(prod(p.shape[1:]) * BYTES.get(p.dtype, 4) for p in evaluation.predictions if p.shape)
    needed = rows * row_bytes
    if needed <= MOST_SHARE * memory:
        return
    shapes = ", ".join(str(p.shape[1:]) for p in evaluation.predictions)
    yield Finding(
        message=f"the evaluation keeps {shapes} scores for each of {rows:,} rows, {needed / GIB:,.0f} GiB; "
        f"the machine has {memory / GIB:,.0f} GiB",
        measured={"needed_bytes": needed, "memory_bytes": memory, "rows": rows, "row_bytes": row_bytes},
        where=setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(f"{rows:,} rows x {row_bytes:,} bytes are {needed / memory:.1f} times the machine's memory"),
        fix=Fix(does=setup.words.fewer_predictions),
    )
