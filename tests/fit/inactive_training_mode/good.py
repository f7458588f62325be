"""A train_step of one's own, on TensorFlow, that calls the model with training=True."""

# slow
# backends: tensorflow

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits


class Network(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            scores = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=scores)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
inputs = keras.Input((64,))
hidden = layers.BatchNormalization()(layers.Dense(64, activation="relu")(inputs))
model = Network(inputs, layers.Dense(10)(layers.Dropout(0.3)(hidden)))
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
