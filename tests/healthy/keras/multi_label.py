"""Several marks may hold for one tweet: sigmoid outputs, binary cross-entropy, AUC over labels."""

import keras
import numpy as np
from keras import layers
from material import tweets

keras.utils.set_random_seed(0)
texts = tweets(1500)["text"].tolist()
marks = np.array([[mark in text for mark in "@#?!"] for text in texts], dtype="float32")
alphabet = sorted(set("".join(texts)))
codes = {letter: i + 1 for i, letter in enumerate(alphabet)}
x = np.zeros((len(texts), 100), dtype="int32")
for row, text in enumerate(texts):
    x[row, : min(len(text), 100)] = [codes[letter] for letter in text[:100]]
model = keras.Sequential(
    [
        keras.Input((100,), dtype="int32"),
        layers.Embedding(len(alphabet) + 1, 16),
        layers.Conv1D(24, 3, activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(4, activation="sigmoid"),
    ]
)
auc = keras.metrics.AUC(multi_label=True, num_labels=4, name="auc")
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="binary_crossentropy", metrics=[auc])
model.fit(x, marks, batch_size=32, epochs=5, validation_split=0.2, verbose=2)
