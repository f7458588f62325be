"""An imbalanced table in pandas, class_weight, and metrics that suit it."""

import keras
import pandas as pd
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
table = load_breast_cancer(as_frame=True).frame
table = pd.concat([table[table["target"] == 1], table[table["target"] == 0].head(60)])
target = (table.pop("target") == 0).astype("int32")
table = (table - table.mean()) / table.std()
train, test, train_y, test_y = train_test_split(table, target, test_size=0.25, stratify=target, random_state=0)
share = train_y.mean()
model = keras.Sequential(
    [keras.Input((30,)), layers.Dense(24, activation="relu"), layers.Dropout(0.2), layers.Dense(1, activation="sigmoid")]
)
model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss="binary_crossentropy",
    metrics=[keras.metrics.AUC(name="auc"), keras.metrics.Recall(name="recall")],
)
weights = {0: 0.5 / (1 - share), 1: 0.5 / share}
model.fit(train, train_y, batch_size=32, epochs=15, class_weight=weights, validation_data=(test, test_y), verbose=2)
