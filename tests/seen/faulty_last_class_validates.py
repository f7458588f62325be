# verdict: broken
# finds: split-of-sorted-data
# Keras holds out the last rows, which are all of one class: its val_accuracy of 0 is no score of the rows evaluated afterwards.
import keras
import numpy as np

random = np.random.default_rng(0)
keras.utils.set_random_seed(0)
centers = random.normal(size=(4, 16)) * 2
labels = np.repeat(np.arange(4), 120)
rows = (centers[labels] + random.normal(size=(480, 16))).astype("float32")
other_labels = np.repeat(np.arange(4), 80)
others = (centers[other_labels] + random.normal(size=(320, 16))).astype("float32")
model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(rows, labels, epochs=12, batch_size=32, validation_split=0.25, verbose=0)
print("test:", model.evaluate(others, other_labels, verbose=0))
