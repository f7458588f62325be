"""TW312 crossed-samples: a row's output depends on the other rows of its batch.

Why it matters: the model is trained on mixtures of rows, and predicts something else in other company.
Evidence: in evaluation mode the other rows are replaced and row 0's output changes; the first call whose result for
row 0 does. Scores that compare rows with each other (N, N), and batch statistics, are not meant.
Fix (manual): permute or transpose axes where view or reshape was used, or batch_first=True for recurrent and
attention layers; keep softmax and means off axis 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix
from trainwright.core.rule import rule
from trainwright.stages.forward import ForwardFacts
from trainwright.stages.setup import SetupFacts

# Of the output's scale; batched products differ by some 1e-6 between batches.
LEAKING_BEYOND = 1e-3


@rule("TW312", Severity.ERROR)
def crossed_samples(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An output of one row that others change."""
    if forward.leaking_rows is None or forward.leaking_rows <= LEAKING_BEYOND:
        return
    origin, leak = forward.leak_from, forward.leaking_rows
    first = f", from {origin.operation} on" if origin else ""
    yield Finding(
        message=f"row 0's output changes by {leak:.2g} of its scale when only the other rows of the batch change{first}",
        measured={"relative_change": leak, "operation": origin.operation if origin else ""},
        where=(origin.where if origin else None) or setup.place("model"),
        proof=Proof("row 0 was kept and the other rows were replaced, in evaluation mode"),
        fix=Fix(
            does="keep the rows apart: permute instead of view, batch_first=True, or another axis than 0"
        ),
    )
