# Denoising auto-encoder with a 3-number bottleneck on made-up pulse shapes
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(14)
rng = np.random.default_rng(14)
L = 40
t = np.linspace(0, 1, L)


def pulses(n):
    centre = rng.uniform(0.25, 0.75, (n, 1))
    width = rng.uniform(0.04, 0.12, (n, 1))
    height = rng.uniform(0.6, 1.4, (n, 1))
    clean = height * np.exp(-0.5 * ((t[None] - centre) / width) ** 2)
    noisy = clean + rng.normal(0, 0.15, clean.shape)
    return noisy.astype("float32"), clean.astype("float32")


x_tr, c_tr = pulses(4000)
x_va, c_va = pulses(500)
x_te, c_te = pulses(500)


@keras.saving.register_keras_serializable()
def scaled_mse(y_true, y_pred):
    return 100.0 * ops.mean(ops.square(y_true - y_pred), axis=-1)


inp = keras.Input((L,))
h = layers.GaussianNoise(0.05)(inp)
h = layers.Dense(96, activation="gelu")(h)
h = layers.Dense(48, activation="gelu")(h)
code = layers.Dense(3, name="code")(h)
h = layers.Dense(48, activation="gelu")(code)
h = layers.Dense(96, activation="gelu")(h)
out = layers.Dense(L)(h)
model = keras.Model(inp, out)
model.compile(keras.optimizers.Adam(3e-3), loss=scaled_mse, metrics=["mse"])

print("mse of the noisy input  :", float(np.mean((x_te - c_te) ** 2)))
print("mse of the mean pulse   :", float(np.mean((c_tr.mean(0) - c_te) ** 2)))
callbacks = [
    keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.3, patience=3),
    keras.callbacks.EarlyStopping("val_loss", patience=8, restore_best_weights=True),
    keras.callbacks.ModelCheckpoint("out_kr_denoise.keras", monitor="val_loss", save_best_only=True),
]
h = model.fit(x_tr, c_tr, validation_data=(x_va, c_va), epochs=30, batch_size=64, verbose=0, callbacks=callbacks)
for e in range(0, len(h.history["loss"]), 6):
    print(f"epoch {e + 1:2d} loss {h.history['loss'][e]:.3f} val_loss {h.history['val_loss'][e]:.3f} "
          f"lr {h.history['learning_rate'][e]:.1e}")

best = keras.saving.load_model("out_kr_denoise.keras")
print("mse of the denoised test:", float(np.mean((best.predict(x_te, verbose=0) - c_te) ** 2)))
encoder = keras.Model(inp, code)
z = encoder.predict(x_te, verbose=0)
print("std of the code:", z.std(0).round(3).tolist())
