"""Tweets whose targets are class numbers."""

import keras
from keras import layers
from material import tweets

keras.utils.set_random_seed(0)
frame = tweets(600)
names = frame["label"].to_numpy()
vectorize = layers.TextVectorization(2000, output_sequence_length=24)
vectorize.adapt(frame["text"].tolist())
tokens = keras.ops.convert_to_numpy(vectorize(frame["text"].tolist()))
model = keras.Sequential(
    [layers.Embedding(2000, 32, mask_zero=True), layers.GlobalAveragePooling1D(), layers.Dense(3, activation="softmax")]
)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(tokens, names, batch_size=32, epochs=3, verbose=2)
