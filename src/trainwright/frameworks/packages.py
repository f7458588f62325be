"""The frameworks' packages, by import name."""

from __future__ import annotations

from enum import StrEnum


class TrainingKind(StrEnum):
    """Whose training it is, as users read it."""

    TRAINER = "Trainer"
    LIGHTNING = "Lightning"
    FIT = "fit"
    LOOP = "loop"


# Packages whose versions a report shows, in this order.
SHOWN = (
    "torch",
    "transformers",
    "accelerate",
    "lightning",
    "datasets",
    "keras",
    "tf_keras",
    "tensorflow",
    "jax",
    "numpy",
)
# Packages whose loggers are silenced during a check.
LOGGING = ("transformers", "accelerate", "datasets", "torch")
# The packages that must not be too old, by the kind of training.
NEEDED: dict[TrainingKind, tuple[str, ...]] = {
    TrainingKind.TRAINER: ("torch", "transformers", "accelerate"),
    TrainingKind.LIGHTNING: ("torch",),
    TrainingKind.FIT: (),
    TrainingKind.LOOP: ("torch",),
}
# The class of a model's configuration, to which `from_pretrained` passes arguments that it does not take itself.
CONFIGURATION = ("transformers.configuration_utils", "PreTrainedConfig")
