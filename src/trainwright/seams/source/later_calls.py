"""Finds later calls that train, after the one that was reached, from the source and the script's current names."""

from __future__ import annotations

# The packages whose class of this name is the model that `fit` trains.
_PACKAGES, _MODEL = ("keras", "tf_keras"), "Model"
