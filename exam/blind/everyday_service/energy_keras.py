# Assignment 2 - predict the heating demand of a building with Keras
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
PATH = os.path.join(tempfile.mkdtemp(), "heating_demand.csv")

# ---- data -------------------------------------------------------------
n = 2500
df = pd.DataFrame({
    "outdoor_temp": rng.normal(6, 8, n),
    "floor_area": rng.gamma(6, 25, n),
    "insulation": rng.uniform(0.2, 1.0, n),
    "occupants": rng.integers(0, 7, n),
    "window_share": rng.uniform(0.05, 0.5, n),
    "heating": rng.choice(["gas", "heatpump", "district"], n),
})
loss_per_m2 = (1.3 - df.insulation) * (0.6 + df.window_share)
delta = np.clip(20 - df.outdoor_temp, 0, None)
factor = df.heating.map({"gas": 1.15, "heatpump": 0.45, "district": 1.0})
df["kwh"] = factor * (0.05 * df.floor_area * loss_per_m2 * delta) - 0.8 * df.occupants + 15 + rng.normal(0, 1.5, n)
df.to_csv(PATH, index=False)

df = pd.read_csv(PATH)
train, test = train_test_split(df, test_size=0.2, random_state=7)
train, valid = train_test_split(train, test_size=0.2, random_state=7)

numeric = ["outdoor_temp", "floor_area", "insulation", "occupants", "window_share"]
x_scaler = StandardScaler().fit(train[numeric])
y_scaler = StandardScaler().fit(train[["kwh"]])
encoder = OneHotEncoder(sparse_output=False).fit(train[["heating"]])


def features(frame):
    return np.hstack([x_scaler.transform(frame[numeric]), encoder.transform(frame[["heating"]])]).astype("float32")


def target(frame):
    return y_scaler.transform(frame[["kwh"]]).astype("float32")


X_train, y_train = features(train), target(train)
X_valid, y_valid = features(valid), target(valid)
X_test = features(test)

# ---- model ------------------------------------------------------------
model = keras.Sequential([
    layers.Input((X_train.shape[1],)),
    layers.Dense(64, activation="relu", kernel_initializer="he_normal"),
    layers.Dense(64, activation="relu", kernel_initializer="he_normal"),
    layers.Dense(1, activation="tanh"),
])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="mse", metrics=["mae"])
stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=8, restore_best_weights=True)
history = model.fit(X_train, y_train, validation_data=(X_valid, y_valid), epochs=40, batch_size=64,
                    callbacks=[stop], verbose=0)
for e in range(0, len(history.history["loss"]), 5):
    print("epoch %2d loss %.4f val_loss %.4f" % (e, history.history["loss"][e], history.history["val_loss"][e]))

# ---- evaluation -------------------------------------------------------
pred = y_scaler.inverse_transform(model.predict(X_test, verbose=0)).ravel()
print("mean predictor MAE %.3f" % mean_absolute_error(test.kwh, np.full(len(test), train.kwh.mean())))
print("test MAE %.3f kWh   R2 %.4f" % (mean_absolute_error(test.kwh, pred), r2_score(test.kwh, pred)))
