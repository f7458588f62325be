"""A train_step of one's own, on TensorFlow, in mixed_float16, that scales its loss."""

# slow
# backends: tensorflow

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

keras.mixed_precision.set_global_policy("mixed_float16")


class Network(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
inputs = keras.Input((64,))
model = Network(inputs, layers.Dense(10, dtype="float32")(layers.Dense(64, activation="relu")(inputs)))
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
