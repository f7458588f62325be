"""TW126 undrawn-rows: the sampler has weights for a few rows only, so all others are never drawn.

Why it matters: WeightedRandomSampler takes a weight for each row. Given one for each class, it draws the first rows of the
data set over and over, and no error is raised.
Evidence: The number of its weights, and the number of rows.
Fix (unsafe): Give it a weight for each row: class_weights[labels].
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.setup import SetupFacts


@rule("TW126", Severity.ERROR, raises=False)
def undrawn_rows(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A weighted sampler with fewer weights than rows."""
    sampler, rows = dataset.sampler, dataset.train.rows
    if sampler is None or rows is None or not 0 < sampler.weights < rows:
        return
    labels = dataset.train.labels
    per_class = labels is not None and labels.kind == "class" and sampler.weights == labels.classes
    yield Finding(
        message=f"the sampler has {sampler.weights:,} weights for {rows:,} rows"
        + (", one for each class" if per_class else "")
        + f": it draws rows 0 to {sampler.weights - 1:,} only, and the other {rows - sampler.weights:,} never",
        measured={"weights": sampler.weights, "rows": rows},
        where=setup.place(Role.SAMPLER, Role.LOADER, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof("a weighted sampler draws numbers of weights, and these are the rows that the loader takes"),
        fix=Fix(
            does="give the sampler a weight for each row: class_weights[labels]"
            if per_class
            else "give it a weight for each row",
            safety=Safety.UNSAFE,
        ),
    )
