"""Stage 4, loss: the loss of one batch compared with chance, and the call that computed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core import Facts, Failure, Place, Stage
from trainwright.stages.dataset import IGNORED_LABEL
from trainwright.stages.tensor import TensorFacts

# The loss functions that are watched, by torch's names, and how the record reads the first argument of each, the second being the
# labels; None: it has no rows to read.
LOSS_FORMS: dict[str, str | None] = {
    "cross_entropy": "classes",
    "nll_loss": "classes",
    "multi_margin_loss": "classes",
    "binary_cross_entropy": "binary",
    "binary_cross_entropy_with_logits": "logits",
    "multilabel_soft_margin_loss": "logits",
    "soft_margin_loss": "signs",
    "mse_loss": "numbers",
    "l1_loss": "numbers",
    "smooth_l1_loss": "numbers",
    "huber_loss": "numbers",
    "gaussian_nll_loss": "numbers",
    "kl_div": None,
    "poisson_nll_loss": None,
    "hinge_embedding_loss": None,
    "margin_ranking_loss": None,
    "multilabel_margin_loss": None,
    "cosine_embedding_loss": None,
    "triplet_margin_loss": None,
    "ctc_loss": None,
}
# Losses over classes, and losses that compare element by element.
CLASS_LOSSES = ("cross_entropy", "nll_loss")
BINARY_LOSSES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
ELEMENTWISE = (*DISTANCES, *BINARY_LOSSES)


@dataclass(frozen=True, kw_only=True)
class LossCall:
    """One call of a loss function."""

    function: str
    """cross_entropy, nll_loss, binary_cross_entropy, binary_cross_entropy_with_logits, mse_loss, l1_loss…"""
    inputs: TensorFacts
    targets: TensorFacts
    at: Place | None
    """The user's line; None if the call is inside a framework."""
    made_at: Place | None = None
    """The user's line that built the loss's module."""
    options: Mapping[str, float | int | str] = field(default_factory=dict)
    """reduction, ignore_index and label_smoothing; has_weight is 1 if there are class weights, and non_finite_weights
    counts those that are NaN or infinite."""
    class_weights: Mapping[int, float] = field(default_factory=dict)
    """The weight of each class, if rows are weighted by their class; a pos_weight is that of class 1."""
    value: float | None = None
    """None if the call raised."""
    failure: Failure | None = None
    from_logits: bool | None = None
    """Whether the loss is set to expect scores (True) or probabilities (False); None: it has no such setting."""
    takes_indices: bool | None = None
    """The loss expects class indices; False: a row with one number per class; None: its name does not tell."""
    own_name: str = ""
    """The framework's name for it, if different from `function`."""
    casts_targets: bool = False
    """It accepts targets of any numeric dtype."""
    library: str = ""
    """The script's name for the library of its losses: keras, tf.keras; empty if it has none."""
    rows_sum_to_one: bool = False
    """The inputs are probabilities that sum to one over the class axis."""
    log_normalised: bool = False
    """The inputs are log-probabilities over the class axis."""
    columns_sum_to_one: bool = False
    """For each class, the inputs sum to one over the rows of the batch instead of over the classes."""
    columns_log_normalised: bool = False
    """The inputs are logarithms of such numbers."""
    in_unit_range: bool = False
    largest_target: int | None = None
    smallest_target: int | None = None
    target_values: tuple[float, ...] = ()
    """The distinct targets, if there are at most 32."""
    rows_of_several_labels: int = 0
    """Number of rows of vector targets that sum to more than one."""
    aligned_value: float | None = None
    """What an elementwise loss would be with the targets in the inputs' shape; None if they already have it."""
    plain_value: float | None = None
    """The mean cross-entropy in nats, without class weights, label smoothing or another reduction."""
    factor: float | None = None
    """Its factor in the minimized loss, if there are several calls."""
    softmax_at: Place | None = None
    """The user's line that applied a softmax or sigmoid to the loss's inputs."""
    activation: str = ""
    """The activation that produced the loss's inputs, possibly reshaped since: sigmoid, tanh, relu, softmax."""
    unreachable_share: float | None = None
    """Share of the targets' variance that is outside the activation's range."""
    activation_at: Place | None = None
    """The user's line that called the activation or built its module."""
    activation_called_at: Place | None = None
    """The line in a user-written forward that called the activation or its module; None elsewhere, and in Keras."""
    activation_module: str = ""
    """The name of the activation's module."""

    @property
    def is_reweighted(self) -> bool:
        """Whether it has class or row weights, smoothed labels, or another reduction than the mean."""
        options = self.options
        return bool(
            options.get("has_weight") or options.get("label_smoothing") or options.get("reduction", "mean") != "mean"
        )

    @property
    def misreads_scores(self) -> bool:
        """Whether the loss expects probabilities but got other numbers.

        Positive numbers above 1 from an activation (softplus, exponential) may be probabilities not yet normalized.
        """
        if self.from_logits is not False or self.in_unit_range or self.inputs.non_finite:
            return False
        return (self.inputs.minimum or 0.0) < 0 or self.activation in ("", "linear")


# Scores of unit spread, the largest from usual initializations, cost about half a nat above ln C; small
# networks on unscaled inputs reach twice ln C and recover.
TIMES_CHANCE = 3.0


@dataclass(frozen=True, kw_only=True)
class CrossedTargets:
    """A handwritten loss that compares each output with the targets of all rows: (N) against (N, 1)."""

    shape: tuple[int, ...]
    aligned_shape: tuple[int, ...]
    """The shape in which each target is compared with its own row's output."""
    value: float
    exchanged_value: float
    """The loss with the targets permuted between rows."""
    aligned_value: float
    """The loss with the targets in the aligned shape."""
    where: Place | None = None
    """The line of the operation that broadcast, if known."""


@dataclass(frozen=True, kw_only=True)
class Renormalised:
    """A softmax or log_softmax in a handwritten loss, applied to the output of a softmax."""

    function: str
    shape: tuple[int, ...]
    where: Place | None
    softmax_at: Place | None


@dataclass(frozen=True, kw_only=True)
class PairedLoss:
    """A user-defined loss that, over a few rows, equals the mean over all pairs of an output and a target."""

    rows: int
    value: float
    by_row: float
    """The mean of the losses of single rows."""


@dataclass(frozen=True, kw_only=True)
class LossTerm:
    """A part of the sum that is minimized."""

    value: float
    """What it adds."""
    function: str = ""
    """The loss function that was called for it; empty: it is none that is known."""
    factor: float = 1.0
    """By what the call's value is multiplied."""
    is_constant: bool = False
    where: Place | None = None
    """The user's line that made it."""


@dataclass(frozen=True, kw_only=True)
class LossFacts(Facts):
    """The loss of the first batch."""

    stage = Stage.LOSS
    failure: Failure | None = None
    function: str = ""
    """The function of `call`; empty if the loss is handwritten."""
    call: LossCall | None = None
    calls: tuple[LossCall, ...] = ()
    evaluation_call: LossCall | None = None
    """The call on the first evaluation batch, if its targets have another form than the training targets."""
    value: float | None = None
    """In nats for a classification; None if the loss raised."""
    terms: tuple[LossTerm, ...] = ()
    """What was added up to it; empty: unknown."""
    classes: int | None = None
    """Number of scores per label; None: not a classification."""
    chance_nats: float | None = None
    """ln(classes)."""
    chance_of_sum: float | None = None
    """The same of all heads over classes that are added up, each times its factor; None: there is one, or none."""
    expected: float | None = None
    """The loss of an uninformed model: ln(classes), ln(2) for binary, the mean square of regression targets."""
    at: Place | None = None
    row_losses: tuple[float, ...] = ()
    """The loss of each row of the batch, if it can be computed."""
    row_labels: tuple[float, ...] = ()
    """The label of each of those rows, if rows have a single label."""
    computed_by_nothing: bool = False
    """No loss was compiled, and no layer or method of the model's class computes one."""
    crossed: CrossedTargets | None = None
    renormalised: tuple[Renormalised, ...] = ()
    paired: PairedLoss | None = None
    padding_label_change: float | None = None
    """Relative change of the loss when only the labels of padding change; None: not tried."""
    ignored_label: int | None = IGNORED_LABEL
    """The label that a class loss ignores by default; None: it ignores none."""
    unchanged_by_weights: bool | None = None
    """The loss stays bit-identical when all trained weights are perturbed."""
    targets_are_labels: bool = False
    """The call's targets are the batch's labels: in the same order, or shifted tokens."""
    token_offset: int | None = None
    """For token losses: the k for which the score at position t is compared with the input token at t + k."""
    outputs: tuple[str, ...] = ()
    """The names of the model's outputs, if losses and targets may refer to them."""
    outputs_keyed: bool = False
    """These names are the keys of the dictionary that the model returns."""
    outputs_named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The output names used in each dictionary argument (loss, metrics…); `labels` stands for the targets."""

    @property
    def is_far_above_chance(self) -> bool:
        """Whether what is minimized is far above the chance level of the classes, by its scores or by further terms."""
        call = self.call
        if self.chance_nats is None or self.value is None or call is None or call.is_reweighted:
            return False
        return self.value > TIMES_CHANCE * max(self.chance_nats, self.chance_of_sum or 0.0)

    @property
    def largest_other(self) -> LossTerm | None:
        """The largest term that no known loss function computed; None if there is none, or the terms are unknown."""
        return max((one for one in self.terms if not one.function), key=lambda one: abs(one.value), default=None)
