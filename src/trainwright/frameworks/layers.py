"""What is known of the frameworks' layers, by the names of their classes."""

from __future__ import annotations

# The argument that sets the size a layer takes, and the axis of its input that must have it.
TAKES = {
    "Linear": ("in_features", -1), "LSTM": ("input_size", -1), "GRU": ("input_size", -1), "RNN": ("input_size", -1),
    "Conv1d": ("in_channels", 1), "Conv2d": ("in_channels", 1), "Conv3d": ("in_channels", 1),
    "LayerNorm": ("normalized_shape", -1), "BatchNorm1d": ("num_features", 1), "BatchNorm2d": ("num_features", 1),
    "BatchNorm3d": ("num_features", 1), "Dense": ("an input of", -1),
}  # fmt: skip
# Keras's recurrent layers, by their classes and by the names that they get of themselves.
RECURRENT = ("LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM", "Bidirectional",
             "lstm", "gru", "simple_rnn", "rnn", "conv_lstm", "bidirectional")  # fmt: skip
# How a model that refuses an input by its declaration is named in the refusal.
MODELS = ("functional", "sequential")
# What declares the input of such a model.
DECLARED = "keras.Input"
