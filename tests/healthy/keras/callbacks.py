"""Early stopping with the best weights, a rate that falls on plateaus, and a callback of one's own."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target


class Rates(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("rate", float(self.model.optimizer.learning_rate), "loss", logs["loss"])


model = keras.Sequential(
    [
        keras.Input((64,)),
        layers.Dense(64, activation="relu", kernel_regularizer=keras.regularizers.L2(1e-4)),
        layers.Dropout(0.3),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
stop = keras.callbacks.EarlyStopping("val_loss", patience=3, restore_best_weights=True)
plateau = keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1)
model.fit(
    images,
    target,
    batch_size=32,
    epochs=12,
    validation_split=0.2,
    callbacks=[stop, plateau, Rates(), keras.callbacks.TerminateOnNaN()],
    verbose=2,
)
