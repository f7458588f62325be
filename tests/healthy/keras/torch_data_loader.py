"""A torch DataLoader in fit, with a split drawn by torch."""

import keras
import torch
from keras import layers
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

keras.utils.set_random_seed(0)
digits = load_digits()
rows = TensorDataset(torch.tensor(digits.images / 16, dtype=torch.float32)[..., None], torch.tensor(digits.target))
train, held = random_split(rows, [1400, 397], generator=torch.Generator().manual_seed(0))
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Conv2D(32, 3, activation="relu"),
        layers.GlobalMaxPooling2D(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    DataLoader(train, batch_size=32, shuffle=True),
    epochs=6,
    validation_data=DataLoader(held, batch_size=128),
    verbose=2,
)
