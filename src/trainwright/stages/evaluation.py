"""Stage 7, evaluation: the user's own evaluation and metrics, on two batches, before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core.finding import Failure
from trainwright.core.stage import Facts, Stage
from trainwright.stages.tensor import TensorFacts


@dataclass(frozen=True, kw_only=True)
class EvaluationFacts(Facts):
    """What the evaluation gave before any training."""

    stage = Stage.EVALUATION
    present: bool = True
    """There is an evaluation set."""
    planned: bool = True
    """The training will evaluate as it goes."""
    failure: Failure | None = None
    metrics_failure: Failure | None = None
    """The metric function raised."""
    predictions: tuple[TensorFacts, ...] = ()
    """What the metric function was given; several when the model returns several outputs."""
    labels: TensorFacts | None = None
    label_values: tuple[float, ...] = ()
    """The distinct labels it was given, where there are at most 32."""
    ragged: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    """By the framework's names (eval_loss, eval_accuracy)."""
    metrics_on_classes: Mapping[str, float] | str = field(default_factory=dict)
    """What the metric function returns when given the index of the largest score; text: it raised that."""
    has_metrics: bool = False
    training_mode: bool = False
    """The model was in training mode while it was evaluated."""
    repeatable: bool | None = None
    """The same batch gave the same predictions twice."""
    label_keys: tuple[str, ...] = ()
    """The label names that the framework looks for in an evaluation batch."""
    batch_keys: tuple[str, ...] = ()
    best_metric: str | None = None
    """The metric that chooses the best checkpoint; None: none is chosen."""
    best_greater: bool | None = None
    predicted: Mapping[int, int] = field(default_factory=dict)
    """How often each class is predicted, for a classification."""
