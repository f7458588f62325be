"""The confusion matrix of a data set, its predictions and labels taken in one pass."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix

# backends: tensorflow
keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
x = (x / 16).astype("float32")


def batches(images, labels):
    """Batches in an order that is drawn anew in each pass."""
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(512).batch(64)


def report(network, data):
    """The confusion matrix of a set."""
    pairs = [(network.predict(images, verbose=0).argmax(axis=1), labels.numpy()) for images, labels in data]
    predicted, true = (np.concatenate(parts) for parts in zip(*pairs))
    print(confusion_matrix(true, predicted))


train, test = batches(x[:1400], y[:1400]), batches(x[1400:], y[1400:])
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, validation_data=test, epochs=5, verbose=0)
report(model, test)
