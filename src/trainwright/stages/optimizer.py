"""Stage 6, optimizer: one update, the groups it works on, and the schedule dry-run over the planned updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core.finding import Failure
from trainwright.core.stage import Facts, Stage


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """One parameter group."""

    parameters: int
    """How many numbers it holds."""
    tensors: int
    learning_rate: float
    weight_decay: float = 0.0
    options: Mapping[str, float | int | str] = field(default_factory=dict)
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OptimizerFacts(Facts):
    """The optimizer and its first update."""

    stage = Stage.OPTIMIZER
    failure: Failure | None = None
    kind: str = ""
    """Class name."""
    groups: tuple[GroupFacts, ...] = ()
    learning_rate: float = 0.0
    """The largest of the groups' rates, at the schedule's peak."""
    update_rate: float | None = None
    """The rate of the measured update, where it is not the peak: the first of a warm-up."""
    rate_given: bool = True
    """False: the rate is a default that nobody wrote."""
    user_built: bool = False
    """The script built the optimizer itself."""
    rate_keyword: str = ""
    """The name of its rate among its arguments; empty: lr, or the framework's own argument."""
    rate_position: int | None = None
    """Where the rate stands among those arguments, where the script wrote it without its name."""
    named_by_string: bool = False
    """The script gave its name, and the framework built it with defaults alone."""
    library: str = ""
    """How the script reaches the library of its optimizers: keras, tf.keras; empty where it does not."""
    trainable: tuple[str, ...] = ()
    """Names of the parameters that require a gradient."""
    held: tuple[str, ...] = ()
    """Names of the model's parameters that the optimizer holds."""
    given_gradients: bool | None = None
    """A step that the user wrote gave some optimizer gradients; None: the framework takes the step."""
    foreign: int = 0
    """Tensors that the optimizer holds and the model does not have."""
    bound: bool = False
    """It takes the weights of one model for good: the walk goes on with an optimizer made anew."""
    changed: Mapping[str, float] = field(default_factory=dict)
    """Relative change of each trainable parameter by one update."""
    schedule_kind: str = ""
    schedule_given: bool = False
    """The script made the schedule itself."""
    schedule_length: int | None = None
    """How many steps the schedule says it has."""
    schedule_failure: Failure | None = None
    """What the schedule raised when it was run dry."""
    schedule: tuple[tuple[int, float], ...] = ()
    """(update, factor of the peak rate) over the planned updates, at up to 200 points."""
    schedule_steps: int | None = None
    """How often the training steps the schedule over the planned updates, where the script does so itself."""
    schedule_moves_at: int | None = None
    """Of a schedule that keeps its first rate over the planned updates: about where it leaves it."""
    planned_updates: int | None = None
    epochs: range | None = None
    """The numbers of the epochs that are asked for, where the framework counts on from an earlier training."""
    warmup_updates: int | None = None
    schedule_first: bool = False
    """A training step moved the schedule on before any update was made."""

    @property
    def unregistered(self) -> tuple[str, ...]:
        """Trainable parameters that the optimizer does not hold."""
        held = set(self.held)
        return tuple(n for n in self.trainable if n not in held)
