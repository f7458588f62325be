"""Rental listings: price (always known) and days-on-market (often missing).

Keras functional model with entity embeddings, two outputs and a masked loss.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from pathlib import Path

import keras
import numpy as np
import pandas as pd
from keras import layers, ops
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(7)
CSV = Path(__file__).with_name("housing_listings.csv")
CATEGORICAL = ["district", "kind", "heating"]
NUMERIC = ["area", "rooms", "floor", "age"]


def write_csv(n=2500):
    rng = np.random.default_rng(7)
    district_value = rng.normal(0, 0.35, 15)
    df = pd.DataFrame({
        "district": [f"d{i:02d}" for i in rng.integers(0, 15, n)],
        "kind": rng.choice(["flat", "loft", "house"], n, p=[0.6, 0.15, 0.25]),
        "heating": rng.choice(["gas", "oil", "district", "none"], n),
        "area": rng.gamma(6, 14, n).clip(18, 250).round(1),
        "rooms": rng.integers(1, 7, n), "floor": rng.integers(0, 9, n), "age": rng.integers(0, 100, n)})
    dv = district_value[df.district.str[1:].astype(int)]
    kv = df.kind.map({"flat": 0.0, "loft": 0.15, "house": 0.25})
    log_price = 4.2 + 0.7 * np.log(df.area) + dv + kv - 0.003 * df.age + rng.normal(0, 0.08, n)
    df["price"] = np.exp(log_price).round(1)
    days = 30 + 25 * (df.heating == "none") + 0.3 * df.age - 20 * dv + rng.normal(0, 5, n)
    df["days"] = days.clip(1).round().where(rng.random(n) > 0.35)
    df.to_csv(CSV, index=False)


def masked_huber(y_true, y_pred):
    known = ops.cast(ops.not_equal(y_true, -99.0), y_pred.dtype)
    err = ops.abs(y_true - y_pred) * known
    huber = ops.where(err < 1.0, 0.5 * err * err, err - 0.5)
    return ops.sum(huber * known) / ops.maximum(ops.sum(known), 1.0)


def build(lookups, normalizer):
    inputs, parts = {}, []
    for c in CATEGORICAL:
        inputs[c] = keras.Input(shape=(1,), dtype="int32", name=c)
        parts.append(layers.Flatten()(layers.Embedding(len(lookups[c]) + 1, 4)(inputs[c])))
    inputs["num"] = keras.Input(shape=(len(NUMERIC),), name="num")
    parts.append(normalizer(inputs["num"]))
    h = layers.Concatenate()(parts)
    h = layers.Dense(64, activation="gelu")(h)
    h = layers.Dense(32, activation="gelu")(h)
    return keras.Model(inputs, {"price": layers.Dense(1, name="price")(h), "days": layers.Dense(1, name="days")(h)})


def main():
    write_csv()
    df = pd.read_csv(CSV)
    train, test = train_test_split(df, test_size=0.25, random_state=1)
    train, val = train_test_split(train, test_size=0.15, random_state=1)
    lookups = {c: {v: i + 1 for i, v in enumerate(sorted(train[c].fillna("none").unique()))} for c in CATEGORICAL}
    log_price = np.log(train.price)
    stats = {"price": (log_price.mean(), log_price.std()), "days": (train.days.mean(), train.days.std())}

    def encode(d):
        x = {c: d[c].fillna("none").map(lookups[c]).fillna(0).astype("int32").to_numpy()[:, None] for c in CATEGORICAL}
        x["num"] = d[NUMERIC].to_numpy("float32")
        price = ((np.log(d.price) - stats["price"][0]) / stats["price"][1]).to_numpy("float32")
        days = ((d.days - stats["days"][0]) / stats["days"][1]).fillna(-99.0).to_numpy("float32")
        return x, {"price": price[:, None], "days": days[:, None]}

    normalizer = layers.Normalization()
    normalizer.adapt(train[NUMERIC].to_numpy("float32"))
    model = build(lookups, normalizer)
    model.compile(optimizer=keras.optimizers.Adam(4e-3), loss={"price": "mse", "days": masked_huber},
                  loss_weights={"price": 1.0, "days": 0.7})
    callbacks = [
        keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.4, patience=3),
        keras.callbacks.EarlyStopping(monitor="val_loss", patience=7, restore_best_weights=True)]
    hist = model.fit(*encode(train), validation_data=encode(val), epochs=35, batch_size=64,
                     callbacks=callbacks, verbose=0)
    x_te, _ = encode(test)
    pred = model.predict(x_te, batch_size=256, verbose=0)
    price = np.exp(pred["price"].ravel() * stats["price"][1] + stats["price"][0])
    days = pred["days"].ravel() * stats["days"][1] + stats["days"][0]
    ok = test.days.notna().to_numpy()
    r2 = lambda y, p: 1 - np.mean((y - p) ** 2) / np.var(y)
    print(f"stopped after {len(hist.history['loss'])} epochs, val loss {min(hist.history['val_loss']):.4f}")
    print(f"price R2 {r2(test.price.to_numpy(), price):.3f}  days R2 {r2(test.days.to_numpy()[ok], days[ok]):.3f}")


if __name__ == "__main__":
    main()
