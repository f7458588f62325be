"""Data about the frameworks' layers, by class name."""

from __future__ import annotations

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
