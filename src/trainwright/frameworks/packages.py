"""The packages of the frameworks, by the names that they are imported by."""

from __future__ import annotations

# Whose versions a report shows, in this order.
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
# Whose loggers are quiet during a walk.
LOGGING = ("transformers", "accelerate", "datasets", "torch")
# What the walk of a Hugging Face Trainer, of Lightning's Trainer and of a loop of the user's own works with.
TRAINER = ("torch", "transformers", "accelerate")
LIGHTNING = ("torch",)
LOOP = ("torch",)
# What the walk of a loop works with besides, by a class that the script builds.
BESIDE_LOOP = {"Accelerator": "accelerate"}
# The class of a model's configuration, to which `from_pretrained` passes on what it does not take itself.
CONFIGURATION = ("transformers.configuration_utils", "PreTrainedConfig")
