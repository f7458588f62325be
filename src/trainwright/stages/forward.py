"""Stage 3, forward: the model's output for one batch, module by module, and the results of several probes."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Facts, Failure, Place, Stage
from trainwright.stages.tensor import TensorFacts


@dataclass(frozen=True, kw_only=True)
class ModuleFacts:
    """One module's call during the forward pass, in the order of the calls."""

    name: str
    """Dotted path from the model; empty for the model itself."""
    kind: str
    """Class name."""
    where: Place | None = None
    """The user's line that built it."""
    inputs: tuple[TensorFacts, ...] = ()
    output: TensorFacts | None = None
    training: bool = True
    leaf: bool = True
    sizes: tuple[int, ...] = ()
    """Declared sizes: (in, out) for a linear or convolution layer, (rows, width) for an embedding, (features) for a
    normalization layer."""
    fixed_size: bool = False
    """Once built, it accepts no other input size."""
    size_at: Place | None = None
    """The nearest line in the call stack of its construction that contains the last of these sizes as a number."""
    dead_share: float | None = None
    """Share of units that are zero for every row in the batch (rectifiers only)."""
    saturated_share: float | None = None
    """Share of values within 0.01 of either end of the range of a sigmoid, tanh or softmax."""
    dropout: float | None = None
    """The probability of a dropout layer."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The first call whose result has some property that its input lacks."""

    operation: str
    """The function's name: view, softmax, linear."""
    where: Place | None = None
    """The nearest line of the user's code in the call stack; None if there are only framework lines."""
    module: str = ""
    """The module whose forward called it."""
    count: int = 0
    """Number of values with the property, if they can be counted."""


@dataclass(frozen=True, kw_only=True)
class ParameterFacts:
    """One parameter, before the first step."""

    name: str
    shape: tuple[int, ...]
    trainable: bool
    dtype: str
    mean: float
    deviation: float
    non_finite: int = 0
    identical_rows: bool = False
    """A matrix whose rows are all equal."""
    unit_axis: int = 0
    """The dimension of a matrix that indexes its units."""
    identical_after_steps: bool | None = None
    """Its rows are still equal after a few steps with a gradient; None: not equal, or no gradient arrives."""
    default_deviation: float | None = None
    """The standard deviation of the framework's own initialization for such a layer."""
    freshly_initialised: bool | None = None
    """The checkpoint did not contain it; None if no checkpoint was loaded, or if this is unknown."""
    frozen_at: Place | None = None
    """The user's line that set its requires_grad to False."""
    initial_deviation: float | None = None
    """The standard deviation that the model's own configuration specifies for initial weights."""
    orthogonal: bool = False
    """A matrix whose rows or columns are orthogonal and of equal length, as nn.init.orthogonal_ produces."""
    module: str = ""
    module_kind: str = ""

    @property
    def units(self) -> int:
        """Number of units (the size of the matrix along `unit_axis`)."""
        return self.shape[self.unit_axis] if self.shape else 0

    @property
    def may_be_untrained(self) -> bool:
        """Whether it may still have its initial values, as far as is known."""
        return self.freshly_initialised is not False

    @property
    def untrained(self) -> bool:
        """Whether it is a matrix that still has its random initial values."""
        if len(self.shape) < 2 or not self.may_be_untrained:
            return False
        if self.freshly_initialised is not None:
            return self.freshly_initialised
        spreads = (self.initial_deviation, self.default_deviation)
        return self.orthogonal or any(s and abs(self.deviation / s - 1) < DRAWN_WITHIN for s in spreads)


# A standard deviation over n values has a relative error of 1/sqrt(2n): 5 % for a head of 64 x 3.
DRAWN_WITHIN = 0.1
# Trained layers produce values on the order of one; inputs that vary by less than this hardly move a score.
DROWNED_DEVIATION = 1e-3
# How many steps equal units are followed for, and the step length. A last layer that starts at zero has different rows
# after one step; a layer behind such a layer, after two.
STEPS_UNTIL_DIFFERENT = 3
STEP_LENGTH = 0.05


@dataclass(frozen=True, kw_only=True)
class RebuiltLayer:
    """A layer with weights that is rebuilt each time the model is called."""

    kind: str
    parameters: int
    where: Place | None
    """The user's line that calls it."""


@dataclass(frozen=True, kw_only=True)
class ForwardFacts(Facts):
    """The first forward pass and the probes of it. None: the probe could not be run or does not apply."""

    stage = Stage.FORWARD
    failure: Failure | None = None
    failed_module: ModuleFacts | None = None
    """The innermost module that raised, with its inputs."""
    modules: tuple[ModuleFacts, ...] = ()
    parameters: tuple[ParameterFacts, ...] = ()
    rebuilt: tuple[RebuiltLayer, ...] = ()
    output: TensorFacts | None = None
    """The model's scores (logits), or its main output."""
    head: ModuleFacts | None = None
    """The last linear layer that was called."""
    configured_labels: int | None = None
    """The number of classes in the model's configuration; None: it has no such setting."""
    training: bool = True
    """The model's mode during the training step."""
    eval_modules: tuple[str, ...] = ()
    """Modules with dropout or batch statistics that stay in evaluation mode during the training step although their
    parameters are trained."""
    mode_by_call: bool = False
    """Layers get their mode with each call; evaluation is the default."""
    called_at: Place | None = None
    """The user's line that called these modules, or the model that contains them, without a mode."""
    lost_modules: tuple[str, ...] = ()
    """Such modules that are in training mode in a loop's first epoch, but not in later ones."""
    mode_lost_at: Place | None = None
    """The user's line that put them in evaluation mode."""
    same_for_other_inputs: bool | None = None
    """Two different batches give the same output, to within 1e-6 of its scale."""
    same_when_perturbed: bool | None = None
    """They still do when every weight is perturbed a little; None: the outputs differ anyway."""
    constant_from: Origin | None = None
    """The call after which the two batches no longer differ."""
    non_finite_from: Origin | None = None
    """The first call that produced NaN or infinity from finite values."""
    ignored_inputs: tuple[str, ...] = ()
    """Inputs that differ between rows, but permuting their rows changes neither scores nor loss."""
    affine: bool | None = None
    """In evaluation mode, each row's output is an affine function of its inputs, whatever the weights."""
    fails_at_rows: int | None = None
    """Another batch size for which the forward pass raises."""
    other_rows_failure: Failure | None = None
    other_rows_from: str = ""
    """Which batch has that size: "the last training batch"."""
    fixed_at: Place | None = None
    """The user's line that gives a tensor the first batch's number of rows, whatever its input is."""
    works_at_rows: int | None = None
    """If the first batch fails: another batch size for which the forward pass works."""
    leaking_rows: float | None = None
    """How much one row's output changes when only other rows change, relative to its scale."""
    leaking_row: int = 0
    leak_from: Origin | None = None
    """The first call whose result for that row depends on other rows."""
    has_last_weights: bool = False
    """The probes were made with the weights that the run ends with, and there is nothing but them."""
    placed_rows: float | None = None
    """How much the outputs of equal rows in different places of the batch differ, relative to their scale."""
    placed_from: Origin | None = None
    """The first call whose results for equal rows differ."""
    causal: bool = False
    """The model declares itself a decoder, or its loss predicts the next token."""
    future_leak: float | None = None
    """How much the output at t changes when only later tokens change, relative to its scale."""
    future_from: Origin | None = None
    """The first call whose result at t depends on later tokens."""
    predicts_next_token: bool = False
    """The targets of the loss are the inputs shifted by one."""
    unmasked_padding_changes: float | None = None
    """Without an attention mask: how much the output at real positions changes, relative to its scale, when a mask
    excludes the padding."""
    padding_let_in_changes: float | None = None
    """How much the output at real positions changes, relative to its scale, when only the padding tokens that the
    attention mask includes are replaced; None: it includes none."""
    memory: MemoryFacts | None = None

    @property
    def frozen_untrained(self) -> tuple[ParameterFacts, ...]:
        """Frozen, untrained matrices of layers that were called."""
        used = {m.name for m in self.modules}
        return tuple(p for p in self.parameters if not p.trainable and p.module in used and p.untrained)

    @property
    def drowned_in_frozen(self) -> bool:
        """Whether several frozen, untrained layers leave the head's input almost without variation."""
        given = self.head.inputs[0].deviation if self.head and self.head.inputs else None
        several = len({p.module for p in self.frozen_untrained}) > 1
        return several and given is not None and given < DROWNED_DEVIATION

    def place_of(self, module: str) -> Place | None:
        """The user's line that built a module or the innermost known module that contains it."""
        built = {m.name: m.where for m in self.modules if m.where}
        while module not in built and module:
            module = module.rpartition(".")[0]
        return built.get(module)


@dataclass(frozen=True, kw_only=True)
class MemoryFacts:
    """What used the device's memory when it ran out, in bytes."""

    device: str
    total_bytes: int
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    activations_at_least: bool = False
    """The activations were estimated from the layers' outputs; a real step keeps more."""
    batch_rows: int
    largest_rows: int | None
    """The largest batch that fits, found by bisection; None: not even one row does."""
