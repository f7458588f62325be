"""The loss calls of a batch, for comparison with a constant prediction."""

from __future__ import annotations

import numpy as np

from trainwright.probes.constant import JudgedLoss, answers
from trainwright.seams.keras.loss import KeptLoss
from trainwright.tensors.keras import objects as tensors


def judged(kept: KeptLoss) -> JudgedLoss:
    """One loss call; if the loss weights its rows, its value is unknown."""
    scores, targets = tensors.to_numpy(kept.scores), tensors.to_numpy(kept.targets)
    known = kept.value is not None and kept.weight is None
    return JudgedLoss(
        function=kept.kind.function,
        shape=scores.shape,
        class_axis=-1,
        targets=targets,
        value=float(tensors.to_numpy(kept.value).mean()) if known else np.nan,
        options=kept.kind.options,
        answers=answers(kept.kind.function, scores, targets, of_indices=bool(kept.kind.sparse)),
    )
