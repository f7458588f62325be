"""TW708 retained-logits: the evaluation keeps every score of every row, and they do not fit in memory.

Why it matters: the run is killed in its first evaluation, often without a message.
Evidence: rows times the scores of a row times their bytes, against the machine's memory.
Fix (manual): keep what the metrics need only: preprocess_logits_for_metrics, or prediction_loss_only.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix
from trainwright.core.rule import rule
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.setup import SetupFacts

# The parts are held once more when they are joined at the end, so half of the memory is the most that fits.
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
        where=setup.place("metrics", "trainer"),
        proof=Proof(
            f"{rows:,} rows x {row_bytes:,} bytes are {needed / memory:.1f} times the machine's memory"
        ),
        fix=Fix(
            does="pass preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1) to the Trainer"
        ),
    )
