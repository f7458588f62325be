"""Regular expressions for the frameworks' error messages, and what layers that they name are called with."""

from __future__ import annotations

import re

# Keras rejects a layer's or a model's input (keras/src/layers/input_spec.py).
REFUSED_INPUT = re.compile(
    r"Input \d+(?: with name '(?P<input>[^']*)')? of layer ['\"](?P<layer>[^'\"]+)['\"] is incompatible with the layer: "
    r"expected (?P<what>ndim|min_ndim|max_ndim|shape|axis (?P<axis>-?\d+) of input shape to have value)[= ]"
    r"(?P<wanted>\([^)]*\)|-?\d+),? (?:found|but received input with) "
    r"(?:ndim=\d+\. Full shape received: |shape[= ]|ndim=)(?P<came>\([^)]*\)|\d+)"
)
# The same for a model whose declared Input has another number of axes (keras/src/models/functional.py).
INVALID_SHAPE = re.compile(
    r"Invalid input shape for input .*?with name '(?P<layer>[^']*)'.*?[Ee]xpected shape (?P<wanted>\([^)]*\)), "
    r"but input has incompatible shape (?:torch\.Size\()?(?P<came>[(\[][^)\]]*[)\]])",
    re.DOTALL,
)
# TensorFlow cannot stack rows.
UNEQUAL_ROWS = re.compile(r"different shapes in component \d+\. .*?shape \[(\d+)\b.*?shape \[(\d+)\b", re.DOTALL)
# What torch puts before an exception of a loader's worker process.
FROM_WORKER = "DataLoader worker process"
# torch's optimizers, about what they were given.
EMPTY_LIST = "optimizer got an empty parameter list"
# A sampler of a data set without rows.
NO_SAMPLES = "num_samples=0"
# torch, about text that was to become a tensor.
TEXT_REFUSED = (
    "numpy.str_",
    "numpy.object_",
    "invalid data type 'str'",
    "invalid data type 'numpy.str_'",
    "dimensions 'str'",
    "StringArray",
)
# torch's gradient scaler: the loss was not scaled.
LOSS_NOT_SCALED = "_scale is None"

# The argument for a layer's input size, and the axis of the input that must have that size.
TAKES = {
    "Linear": ("in_features", -1), "LSTM": ("input_size", -1), "GRU": ("input_size", -1), "RNN": ("input_size", -1),
    "Conv1d": ("in_channels", 1), "Conv2d": ("in_channels", 1), "Conv3d": ("in_channels", 1),
    "LayerNorm": ("normalized_shape", -1), "BatchNorm1d": ("num_features", 1), "BatchNorm2d": ("num_features", 1),
    "BatchNorm3d": ("num_features", 1), "Dense": ("an input of", -1),
}  # fmt: skip
# Keras's recurrent layers, by class name and by automatic layer name.
RECURRENT = ("LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM", "Bidirectional",
             "lstm", "gru", "simple_rnn", "rnn", "conv_lstm", "bidirectional")  # fmt: skip
# The name, in the error message, of a model that rejects an input because of its declaration.
MODELS = ("functional", "sequential")
# The class that declares the input of such a model.
DECLARED = "keras.Input"
