"""Stage 3, forward: the model's answer to one batch, module by module, and what probes of it show."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core.finding import Failure, Place
from trainwright.core.stage import Facts, Stage
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
    """Declared sizes: (in, out) of a linear or convolution layer, (rows, width) of an embedding."""
    dead_share: float | None = None
    """Share of units that are zero for every row of the batch (rectifiers only)."""
    saturated_share: float | None = None
    """Share of values within 0.01 of the ends of a sigmoid, tanh or softmax."""
    dropout: float | None = None
    """The probability of a dropout layer."""


@dataclass(frozen=True, kw_only=True)
class ParameterFacts:
    """One parameter as it stands before the first step."""

    name: str
    shape: tuple[int, ...]
    trainable: bool
    dtype: str
    mean: float
    deviation: float
    non_finite: int = 0
    identical_rows: bool = False
    """A matrix whose rows are all equal."""
    default_deviation: float | None = None
    """The standard deviation that the framework's own initialisation of such a layer gives."""
    freshly_initialised: bool | None = None
    """The checkpoint did not hold it; None where no checkpoint was loaded or that is unknown."""
    module: str = ""
    module_kind: str = ""


@dataclass(frozen=True, kw_only=True)
class ForwardFacts(Facts):
    """The first forward pass, and probes of it. None: a probe that could not be made or does not apply."""

    stage = Stage.FORWARD
    failure: Failure | None = None
    failed_module: ModuleFacts | None = None
    """The innermost module whose call raised, with what it was given."""
    modules: tuple[ModuleFacts, ...] = ()
    parameters: tuple[ParameterFacts, ...] = ()
    output: TensorFacts | None = None
    """The model's scores (logits), or its main output."""
    output_rows_sum_to_one: bool = False
    output_in_unit_range: bool = False
    head: ModuleFacts | None = None
    """The last linear layer that was called."""
    training: bool = True
    """The model's mode during the training step."""
    stochastic: bool = False
    """It has dropout or batch statistics, in force or not."""
    eval_modules: tuple[str, ...] = ()
    """Modules with dropout or batch statistics that stay in evaluation mode during the training step and
    whose parameters are trained."""
    same_for_other_inputs: bool | None = None
    """Two different batches give the same output, to 1e-6 of its scale."""
    fails_at_rows: int | None = None
    """The other number of rows at which the forward pass raises."""
    other_rows_failure: Failure | None = None
    leaking_rows: float | None = None
    """By how much row 0's output changes when only other rows change, relative to its scale."""
    causal: bool = False
    """The model declares itself a decoder or its loss predicts the next token."""
    future_leak: float | None = None
    """By how much the output at t changes when only later tokens change, relative to its scale."""
    padding_changes: float | None = None
    """By how much a row's output at real positions changes when padding is added, relative to its scale."""
    memory: MemoryFacts | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryFacts:
    """What holds the device's memory, in bytes, when it ended."""

    device: str
    total_bytes: int
    free_bytes: int
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    batch_rows: int
    largest_rows: int | None
    """The largest batch that fits, found by bisection; None: not even one row does."""
