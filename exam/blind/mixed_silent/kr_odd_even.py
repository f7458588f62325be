"""Feature extraction with Keras 3 on torch: train on many labels for one task, reuse for another with few."""
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(5)

digits = load_digits()
X = (digits.images / 16.0).astype("float32")[..., None]
Y = digits.target

x_src, x_tgt, y_src, y_tgt = train_test_split(X, Y, test_size=0.5, random_state=0, stratify=Y)
x_few, x_te, y_few, y_te = train_test_split(x_tgt, y_tgt % 2, train_size=120, random_state=0)

base = keras.Sequential([
    keras.Input((8, 8, 1)),
    layers.Conv2D(8, 3, activation="relu", padding="same"),
    layers.MaxPooling2D(),
    layers.Conv2D(16, 3, activation="relu", padding="same"),
    layers.Flatten(),
    layers.Dense(16, activation="relu"),
], name="base")

# source task: which digit
source_model = keras.Sequential([base, layers.Dense(10, activation="softmax")])
source_model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
source_model.fit(x_src, y_src, epochs=10, batch_size=64, verbose=0)
print("source task accuracy on the other half:", round(source_model.evaluate(x_tgt, y_tgt, verbose=0)[1], 4))

# target task: odd or even, few labels, extractor stays as it is
extractor = keras.models.clone_model(base)
extractor.trainable = False

inputs = keras.Input((8, 8, 1))
features = extractor(inputs, training=False)
x = layers.Dropout(0.1)(features)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.Adam(2e-2), "binary_crossentropy", metrics=["accuracy"])
model.summary()
print("trainable parameters:", sum(int(np.prod(w.shape)) for w in model.trainable_weights))

h = model.fit(x_few, y_few, epochs=25, batch_size=30, verbose=0, validation_data=(x_te, y_te))
for e in range(4, 25, 5):
    print(f"epoch {e + 1:2d} " + " ".join(f"{k} {v[e]:.3f}" for k, v in h.history.items()))
loss, acc = model.evaluate(x_te, y_te, verbose=0)
print(f"odd/even with 120 labels: loss {loss:.4f} accuracy {acc:.4f}")

p = model.predict(x_te, verbose=0)[:, 0] > 0.5
digit = train_test_split(x_tgt, y_tgt, train_size=120, random_state=0)[3]
for d in range(10):
    print(f"  digit {d}: accuracy {np.mean(p[digit == d] == y_te[digit == d]):.2f}")

model.save("out_kr_odd_even.keras")
again = keras.saving.load_model("out_kr_odd_even.keras")
print("after loading:", round(again.evaluate(x_te, y_te, verbose=0)[1], 4))
