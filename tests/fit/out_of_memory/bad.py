"""Batches of 64 rows, where 20 fit.

The backend's own error of a card whose memory has ended, raised by a layer in its stead, on each of the three.
"""

import keras
import numpy as np
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
images = (images / 16).astype("float32")[:600]


def ended():
    """What the backend raises where a device's memory ends."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        text = "OOM when allocating tensor with shape[64,64] and type float on /job:localhost/device:GPU:0"
        return tf.errors.ResourceExhaustedError(None, None, text)
    if keras.backend.backend() == "jax":
        import jax

        return jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16384 bytes.")
    import torch

    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.body, self.head = keras.layers.Dense(64, "relu"), keras.layers.Dense(10)

    def call(self, x):
        if x.shape[0] is not None and x.shape[0] > 20:  # stands for a device on which 20 rows fit
            raise ended()
        return self.head(self.body(x))


model = Net()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(1e-2), loss, run_eagerly=True)
model.fit(
    images,
    np.array(digits[:600]),
    batch_size=64,  # expect: out-of-memory
    epochs=10,
    verbose=0,
)
