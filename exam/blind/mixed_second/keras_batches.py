# backends: torch
"""Digits from a Keras PyDataset with augmentation."""
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 0


class DigitBatches(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size, augment=False, seed=0, **kw):
        super().__init__(**kw)
        self.x, self.y = x, y
        self.batch_size = batch_size
        self.augment = augment
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return int(np.ceil(len(self.x) / self.batch_size))

    def __getitem__(self, i):
        s = slice(i * self.batch_size, (i + 1) * self.batch_size)
        x, y = self.x[s], self.y[s]
        if self.augment:
            x = np.clip(x + self.rng.normal(0, .08, x.shape), 0, 1)
            x = np.roll(x, self.rng.integers(-1, 2), axis=2)
        return x.astype("float32"), y

    def on_epoch_end(self):
        if self.augment:
            self.rng.shuffle(self.x)
            self.rng.shuffle(self.y)


def build():
    return keras.Sequential([
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu", padding="same"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu", padding="same"),
        layers.Flatten(),
        layers.Dropout(.2),
        layers.Dense(10),
    ])


def main():
    keras.utils.set_random_seed(SEED)
    d = load_digits()
    x = d.images[..., None] / 16
    xtr, xte, ytr, yte = train_test_split(x, d.target, test_size=.3, random_state=SEED, stratify=d.target)
    train = DigitBatches(xtr, ytr, 64, augment=True, seed=SEED)
    test = DigitBatches(xte, yte, 256)
    model = build()
    model.compile(optimizer=keras.optimizers.Adam(3e-3),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    h = model.fit(train, validation_data=test, epochs=8, verbose=0).history
    for e in range(len(h["loss"])):
        print(f"epoch {e + 1} loss {h['loss'][e]:.3f} acc {h['accuracy'][e]:.3f} "
              f"val_loss {h['val_loss'][e]:.3f} val_acc {h['val_accuracy'][e]:.3f}")
    print(f"test accuracy {model.evaluate(test, verbose=0)[1]:.3f}")


if __name__ == "__main__":
    main()
