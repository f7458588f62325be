"""Machine-fault detection with class imbalance (Keras tutorial, own data)."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
from keras import layers
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)

CLASSES = ["ok", "bearing", "rotor"]

# ---------------------------------------------------------------------------
# 1. Data: 20 vibration features, three states, faults are rare
# ---------------------------------------------------------------------------
X, y = make_classification(
    n_samples=3000, n_features=20, n_informative=8, n_redundant=4, n_classes=3,
    n_clusters_per_class=2, weights=[0.86, 0.09, 0.05], class_sep=0.9, flip_y=0.0, random_state=4)
X = X.astype("float32")
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
X_train, X_val, y_train, y_val = train_test_split(
    X_train, y_train, test_size=0.2, stratify=y_train, random_state=0)

counts = np.bincount(y_train)
for name, c in zip(CLASSES, counts):
    print(f"{name:8s} {c:5d} training samples")

# ---------------------------------------------------------------------------
# 2. Class weights, so that the rare states matter in the loss
# ---------------------------------------------------------------------------
total = counts.sum()
class_weight = {i: len(counts) * c / total for i, c in enumerate(counts)}

# ---------------------------------------------------------------------------
# 3. Model
# ---------------------------------------------------------------------------
normalizer = layers.Normalization()
normalizer.adapt(X_train)


def make_model():
    inputs = keras.Input(shape=(X.shape[1],))
    x = normalizer(inputs)
    for units in (48, 24):
        x = layers.Dense(units, kernel_initializer="he_normal")(x)
        x = layers.Activation("relu")(x)
        x = layers.Dropout(0.1)(x)
    outputs = layers.Dense(len(CLASSES), activation="softmax")(x)
    return keras.Model(inputs, outputs)


model = make_model()
model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"])

# ---------------------------------------------------------------------------
# 4. Training
# ---------------------------------------------------------------------------
history = model.fit(
    X_train, y_train, validation_data=(X_val, y_val), epochs=25, batch_size=64,
    class_weight=class_weight, verbose=0)
print(f"final training accuracy {history.history['accuracy'][-1]:.3f}")

# ---------------------------------------------------------------------------
# 5. Evaluation
# ---------------------------------------------------------------------------
pred = model.predict(X_test, batch_size=256, verbose=0).argmax(axis=1)
for i, name in enumerate(CLASSES):
    recall = (pred[y_test == i] == i).mean()
    print(f"recall {name:8s} {recall:.3f}")
print(f"macro F1 {f1_score(y_test, pred, average='macro'):.3f}")
print(f"balanced accuracy {balanced_accuracy_score(y_test, pred):.3f}")
