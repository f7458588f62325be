"""A functional residual network on pictures of 0 to 255, which a Rescaling layer brings to 0 to 1."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images[..., None] * 15.9).astype("uint8"), digits.target


def block(x, width):
    y = layers.Conv2D(width, 3, padding="same", activation="relu")(layers.LayerNormalization()(x))
    return layers.Add()([x, layers.Conv2D(width, 3, padding="same")(y)])


inputs = keras.Input((8, 8, 1), dtype="uint8")
x = layers.Conv2D(16, 3, padding="same")(layers.Rescaling(1 / 255)(inputs))
for _ in range(2):
    x = block(x, 16)
x = layers.GlobalAveragePooling2D()(layers.Activation("relu")(x))
model = keras.Model(inputs, layers.Dense(10)(x))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=64, epochs=6, validation_split=0.2, verbose=2)
