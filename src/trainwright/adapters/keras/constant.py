"""The loss calls of a batch, for comparison with a constant prediction."""

from __future__ import annotations

import numpy as np

from trainwright.probes.constant import JudgedLoss, answers, hits_of_call
from trainwright.seams.keras.loss import KeptLoss, aligned
from trainwright.stages import IGNORED_LABEL
from trainwright.stages.overfit import Hits
from trainwright.tensors.keras import objects as tensors


def judged(kept: KeptLoss) -> JudgedLoss:
    """One loss call; if the loss weights its rows, no constant prediction is known for it."""
    scores, targets = tensors.to_numpy(kept.scores), tensors.to_numpy(kept.targets)
    value = float(tensors.to_numpy(kept.value).mean()) if kept.value is not None else np.nan
    return JudgedLoss(
        function=kept.kind.function,
        shape=scores.shape,
        class_axis=-1,
        targets=targets,
        value=value if kept.weight is None else np.nan,
        options=kept.kind.options,
        answers=answers(kept.kind.function, scores, targets, of_indices=bool(kept.kind.sparse)),
        hits=_hits(kept),
    )


def _hits(kept: KeptLoss) -> Hits | None:
    scores, targets = aligned(kept)
    if kept.kind.sparse:
        whole = targets.astype(np.int64)  # Keras accepts class indices of any dtype
        targets = whole[..., 0] if targets.ndim == scores.ndim and targets.shape[-1:] == (1,) else whole
    ignored = kept.kind.options.get("ignore_index", IGNORED_LABEL)
    return hits_of_call(kept.kind.function, scores, targets, class_axis=-1, ignored=float(ignored))
