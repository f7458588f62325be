"""Stage 6, optimizer: one update, the parameter groups, and the rates over the planned updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core import Facts, Failure, Stage


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """One parameter group."""

    tensors: int
    weight_decay: float = 0.0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OptimizerFacts(Facts):
    """The optimizer and its first update."""

    stage = Stage.OPTIMIZER
    failure: Failure | None = None
    kind: str = ""
    """Class name."""
    weights_bytes: int = 0
    """What the weights take in memory, and below their gradients and the optimizer's state after an update."""
    gradients_bytes: int = 0
    state_bytes: int = 0
    groups: tuple[GroupFacts, ...] = ()
    learning_rate: float = 0.0
    """The largest rate of any group, at the schedule's peak."""
    update_rate: float | None = None
    """The rate of the measured update, if it is not the peak (during a warm-up)."""
    rate_given: bool = True
    """The script set the rate; False: it is a default."""
    user_built: bool = False
    """The script built the optimizer itself."""
    rate_keyword: str = ""
    """The name of the argument that sets the rate; empty: lr, or the framework's own argument."""
    rate_position: int | None = None
    """The rate's position among the arguments, if the script passed it positionally."""
    named_by_string: bool = False
    """The script gave only the optimizer's name, and the framework built it with all defaults."""
    library: str = ""
    """The script's name for the library of its optimizers: keras, tf.keras; empty if it has none."""
    trainable: tuple[str, ...] = ()
    """Names of the parameters that require a gradient."""
    held: tuple[str, ...] = ()
    """Names of the model's parameters that the optimizer holds."""
    given_gradients: bool | None = None
    """A user-written step gave an optimizer gradients; None: the framework takes the step."""
    foreign: int = 0
    """Number of tensors that the optimizer holds but that are not part of the model."""
    bound: bool = False
    """It is bound to one model's weights for good, so the check continues with a newly built optimizer."""
    changed: Mapping[str, float] = field(default_factory=dict)
    """Relative change of each trainable parameter in one update."""
    schedule_kind: str = ""
    schedule_given: bool = False
    """The script made the schedule itself."""
    schedule_length: int | None = None
    """The schedule's own number of steps."""
    schedule_failure: Failure | None = None
    """The exception that the schedule raised when it was run dry."""
    schedule: tuple[tuple[int, float], ...] = ()
    """(update, fraction of the peak rate) over the planned updates, at up to 200 points."""
    schedule_seen: int = 0
    """So many of these are rates of the run's own first updates; the others are those of the schedule, run dry."""
    schedule_direction: str = ""
    """Of a schedule that lowers the rate where a number stops improving: `min` or `max`, which it takes for the better."""
    schedule_patience: int | None = None
    schedule_steps: int | None = None
    """If the script steps the schedule itself: the number of schedule steps over the planned updates."""
    schedule_moves_at: int | None = None
    """If the schedule keeps its first rate over the planned updates: roughly the update at which it changes."""
    planned_updates: int | None = None
    epochs: range | None = None
    """The requested epoch numbers, if the framework continues counting from an earlier training."""
    warmup_updates: int | None = None
    schedule_first: bool = False
    """A training step advanced the schedule before any update was made."""

    @property
    def unregistered(self) -> tuple[str, ...]:
        """Trainable parameters that the optimizer does not hold."""
        held = set(self.held)
        return tuple(n for n in self.trainable if n not in held)
