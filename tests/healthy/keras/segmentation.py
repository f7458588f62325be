"""Which pixels belong to the disc: an encoder and decoder with skips, a class for each pixel."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
across, down = np.meshgrid(np.arange(16), np.arange(16))
centres, radii = draw.uniform(4, 12, (400, 2, 1, 1)), draw.uniform(2, 5, (400, 1, 1))
masks = ((across - centres[:, 0]) ** 2 + (down - centres[:, 1]) ** 2 < radii**2).astype("int32")
images = (masks + draw.normal(0, 0.5, masks.shape)).astype("float32")[..., None]
inputs = keras.Input((16, 16, 1))
fine = layers.Conv2D(12, 3, padding="same", activation="relu")(inputs)
coarse = layers.Conv2D(24, 3, padding="same", activation="relu")(layers.MaxPooling2D()(fine))
up = layers.Conv2DTranspose(12, 2, strides=2, activation="relu")(coarse)
x = layers.Concatenate()([up, fine])
x = layers.Conv2D(12, 3, padding="same", activation="relu")(x)
model = keras.Model(inputs, layers.Conv2D(2, 1, activation="softmax")(x))
overlap = keras.metrics.MeanIoU(2, sparse_y_pred=False, name="overlap")
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=[overlap])
model.fit(images, masks, batch_size=16, epochs=5, validation_split=0.2, verbose=2)
