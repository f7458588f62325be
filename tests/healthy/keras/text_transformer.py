"""Tweets in three classes through a small transformer: the mended form of examples/keras_text.py."""

# slow

import keras
import tensorflow as tf
from keras import layers, ops
from material import tweets

frame = tweets(1600)
texts, labels = frame["text"].tolist(), frame["label"].to_numpy()
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
    def __init__(self, vocabulary, length=24, width=256, depth=6, num_labels=3):
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


inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
train_dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).shuffle(1600, seed=0).batch(16)

keras.utils.set_random_seed(0)
model = TextClassifier(vocabulary=4000)
model.compile(
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    optimizer=keras.optimizers.Adam(1e-4),
    metrics=["accuracy"],
)
model.fit(train_dataset, epochs=2)
