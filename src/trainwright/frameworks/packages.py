"""The frameworks' packages, by import name."""

from __future__ import annotations

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
# The packages used in the check of a Hugging Face Trainer, Lightning's Trainer, and a handwritten loop.
TRAINER = ("torch", "transformers", "accelerate")
LIGHTNING = ("torch",)
LOOP = ("torch",)
# The class of a model's configuration, to which `from_pretrained` passes arguments that it does not take itself.
CONFIGURATION = ("transformers.configuration_utils", "PreTrainedConfig")
