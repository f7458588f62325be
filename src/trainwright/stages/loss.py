"""Stage 4, loss: the loss of one batch against that of chance, and the call that computed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core.finding import Failure, Place
from trainwright.core.stage import Facts, Stage
from trainwright.stages.dataset import IGNORED_LABEL
from trainwright.stages.tensor import TensorFacts

# The losses that tell classes from each other, and those that compare element by element.
CLASS_LOSSES = ("cross_entropy", "nll_loss")
DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
ELEMENTWISE = (*DISTANCES, "binary_cross_entropy", "binary_cross_entropy_with_logits")


@dataclass(frozen=True, kw_only=True)
class LossCall:
    """One call of a loss function."""

    function: str
    """cross_entropy, nll_loss, binary_cross_entropy, binary_cross_entropy_with_logits, mse_loss, l1_loss…"""
    inputs: TensorFacts
    targets: TensorFacts
    at: Place | None
    """The user's line, or None when it lies inside a framework."""
    options: Mapping[str, float | int | str] = field(default_factory=dict)
    """reduction, ignore_index, label_smoothing; has_weight 1 when class weights are given, non_finite_weights
    how many of them are NaN or infinite."""
    value: float | None = None
    """None: the call raised."""
    failure: Failure | None = None
    from_logits: bool | None = None
    """The loss was told that its inputs are scores (True) or probabilities; None: it has no such setting."""
    takes_indices: bool | None = None
    """It takes class indices; False: a row of one number a class; None: its name does not say."""
    own_name: str = ""
    """The framework's name of it, where that is another than `function`."""
    casts_targets: bool = False
    """It takes targets of any type of number."""
    library: str = ""
    """How the script reaches the library of its losses: keras, tf.keras; empty where it does not, or by another way."""
    rows_sum_to_one: bool = False
    """The inputs are a probability distribution over their class axis."""
    log_normalised: bool = False
    """The inputs are log-probabilities over their class axis."""
    columns_sum_to_one: bool = False
    """The inputs are a probability distribution over the rows of the batch, for each class, and not over the classes."""
    columns_log_normalised: bool = False
    """The inputs are the logarithms of one."""
    in_unit_range: bool = False
    largest_target: int | None = None
    smallest_target: int | None = None
    target_values: tuple[float, ...] = ()
    """The distinct targets, where there are at most 32."""
    targets_one_hot: bool = False
    """The targets have the inputs' shape (rows, classes), and each row is 1 for one class and 0 for the others."""
    rows_of_several_labels: int = 0
    """How many rows of vector targets do."""
    aligned_value: float | None = None
    """What an element-wise loss would be with the targets in the inputs' shape; None where they have it."""
    plain_value: float | None = None
    """The mean cross-entropy in nats without class weights, smoothing or another reduction."""
    factor: float | None = None
    """By what factor it entered the loss that is minimised, where there are several calls."""
    softmax_at: Place | None = None
    """The user's line that applied a softmax or sigmoid to what the loss was given."""
    activation: str = ""
    """The activation whose result the loss was given, reshaped or not: sigmoid, tanh, relu, softmax."""
    unreachable_share: float | None = None
    """Share of the targets' mean square distance from their mean that lies outside the activation's range."""
    activation_at: Place | None = None
    """The user's line that called it, or that built its module."""
    activation_called_at: Place | None = None
    """The line that called it, its module's too, of a forward that the user wrote; None elsewhere, and in Keras."""
    activation_module: str = ""
    """Its name among the modules that were called."""

    @property
    def misreads_scores(self) -> bool:
        """Whether it takes probabilities and was given numbers that are none.

        Positive numbers above 1 that an activation made (softplus, exponential) may be shares not divided yet.
        """
        if self.from_logits is not False or self.in_unit_range or self.inputs.non_finite:
            return False
        return (self.inputs.minimum or 0.0) < 0 or self.activation in ("", "linear")


@dataclass(frozen=True, kw_only=True)
class CrossedTargets:
    """A loss written by hand that compares each output with the targets of all rows: (N) against (N, 1)."""

    shape: tuple[int, ...]
    aligned_shape: tuple[int, ...]
    """In this shape each target is compared with its own row's output."""
    value: float
    exchanged_value: float
    """The loss with the targets of the rows exchanged."""
    aligned_value: float
    """The loss with the targets in the other shape."""
    where: Place | None = None
    """The line whose operation made the pairs, where it is known."""


@dataclass(frozen=True, kw_only=True)
class Renormalised:
    """A softmax or log_softmax, in a loss written by hand, of what a softmax gave."""

    function: str
    shape: tuple[int, ...]
    where: Place | None
    softmax_at: Place | None


@dataclass(frozen=True, kw_only=True)
class PairedLoss:
    """A loss of the user's own that is, over some rows, the mean over all pairs of an output and a target."""

    rows: int
    value: float
    by_row: float
    """The mean of the losses of the rows, each by itself."""


@dataclass(frozen=True, kw_only=True)
class LossFacts(Facts):
    """The loss of the first batch."""

    stage = Stage.LOSS
    failure: Failure | None = None
    function: str = ""
    """That of the last loss call seen; empty where the loss is written by hand."""
    call: LossCall | None = None
    calls: tuple[LossCall, ...] = ()
    evaluation_call: LossCall | None = None
    """That of the first evaluation batch, where its targets have another form than those of the training."""
    value: float | None = None
    """In nats for a classification; None: it raised."""
    requires_grad: bool = True
    classes: int | None = None
    """The width of the scores; None: not a classification."""
    chance_nats: float | None = None
    """ln(classes)."""
    expected: float | None = None
    """The loss of an untrained model: ln(classes), or the variance of regression targets."""
    at: Place | None = None
    row_losses: tuple[float, ...] = ()
    """The loss of each row of the batch by itself, where it can be had."""
    row_labels: tuple[float, ...] = ()
    """The label of each of those rows, where rows have one."""
    computed_by_nothing: bool = False
    """No loss was compiled, and no layer or method of the model's class computes one."""
    crossed: CrossedTargets | None = None
    renormalised: tuple[Renormalised, ...] = ()
    paired: PairedLoss | None = None
    padding_label_change: float | None = None
    """By how much of itself the loss changes when only the labels of padding change; None: not tried."""
    ignored_label: int | None = IGNORED_LABEL
    """The label that a class loss leaves out if it is told no other; None: it leaves none out."""
    unchanged_by_weights: bool | None = None
    """The loss stays the same to the last bit when all trained weights are perturbed."""
    second_step: Failure | None = None
    """What a second step raised that the first did not."""
    rebound_at: Place | None = None
    """The user's line that gave the called name another value, where a call failed because of it."""
    targets_are_labels: bool = False
    """The last call's targets are the batch's labels: the same ones in their order, or those of moved tokens."""
    token_offset: int | None = None
    """k where the score at position t is compared with the input token at t + k, for token losses."""
    outputs: tuple[str, ...] = ()
    """The names of the model's outputs, where losses and targets may go by them."""
    outputs_keyed: bool = False
    """They are the keys of the dictionary that the model answers with."""
    outputs_named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the argument of a dictionary (loss, metrics…; labels: the targets), the names of outputs in it."""
