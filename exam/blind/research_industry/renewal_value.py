"""Contract renewal (Keras): joint model for renewal probability and renewed value (value only where renewed)."""
import json
import logging
import os
import tempfile
from dataclasses import dataclass

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.metrics import r2_score, roc_auc_score

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("renewal")

NUMERIC = ["tenure_months", "log_value", "logins_per_seat", "open_tickets", "discount"]


@dataclass
class Config:
    n: int = 6000
    dim: int = 4
    units: int = 40
    epochs: int = 12
    batch_size: int = 128
    lr: float = 3e-3
    patience: int = 3
    seed: int = 90


def load_contracts(cfg):
    rng = np.random.default_rng(cfg.seed)
    df = pd.DataFrame({
        "end_date": pd.Timestamp("2022-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 900, cfg.n)), "D"),
        "industry": rng.choice(["retail", "health", "public", "finance", "media"], cfg.n),
        "plan": rng.choice(["basic", "team", "enterprise"], cfg.n, p=[0.5, 0.35, 0.15]),
        "tenure_months": rng.gamma(2, 12, cfg.n),
        "seats": rng.integers(3, 200, cfg.n),
        "logins_per_seat": rng.gamma(2, 2, cfg.n),
        "open_tickets": rng.poisson(1.2, cfg.n),
        "discount": rng.choice([0, 0.1, 0.2], cfg.n),
    })
    price = df["plan"].map({"basic": 9, "team": 19, "enterprise": 39})
    df["value"] = price * df["seats"] * (1 - df["discount"]) * 12
    sector = df["industry"].map({"retail": -0.5, "health": 0.6, "public": 0.9, "finance": 0.2, "media": -0.8})
    logit = 1.0 + sector + 0.45 * (df["logins_per_seat"] - 4) - 0.6 * (df["open_tickets"] - 1.2) + 0.02 * df["tenure_months"]
    df["renewed"] = (rng.random(cfg.n) < 1 / (1 + np.exp(-logit))).astype(int)
    growth = 0.06 * (df["logins_per_seat"] - 4) + 0.15 * sector + 0.12 * rng.standard_normal(cfg.n)
    df["renewed_value"] = np.where(df["renewed"] == 1, df["value"] * np.exp(growth), np.nan)
    df["log_value"] = np.log(df["value"])
    return df


def inputs_of(df):
    return {"industry": df["industry"].to_numpy(str).astype(object), "plan": df["plan"].to_numpy(str).astype(object),
            "numeric": df[NUMERIC].to_numpy(np.float32)}


def targets_of(df):
    change = np.log(df["renewed_value"] / df["value"])
    y = {"renewed": df["renewed"].to_numpy(np.float32)[:, None],
         "change": change.fillna(0.0).to_numpy(np.float32)[:, None]}
    w = {"renewed": np.ones(len(df), np.float32), "change": df["renewed"].to_numpy(np.float32)}
    return y, w


class Vocabulary:
    def __init__(self, values):
        self.index = {v: i + 1 for i, v in enumerate(sorted(set(values)))}

    def __len__(self):
        return len(self.index) + 1

    def __call__(self, values):
        return np.array([self.index.get(v, 0) for v in values], dtype="int32")[:, None]


def encode(x, vocabs):
    return {**{k: v(x[k]) for k, v in vocabs.items()}, "numeric": x["numeric"]}


def build(cfg, vocabs, numeric_train):
    norm = layers.Normalization()
    norm.adapt(numeric_train)
    ins = {k: keras.Input((1,), dtype="int32", name=k) for k in vocabs}
    num = keras.Input((len(NUMERIC),), name="numeric")
    parts = [layers.Flatten()(layers.Embedding(len(v), cfg.dim)(ins[k])) for k, v in vocabs.items()]
    h = layers.Concatenate()([*parts, norm(num)])
    h = layers.Dense(cfg.units, activation="relu")(h)
    h = layers.Dropout(0.1)(h)
    h = layers.Dense(cfg.units, activation="relu")(h)
    outs = {"renewed": layers.Dense(1, name="renewed")(h), "change": layers.Dense(1, name="change")(h)}
    model = keras.Model({**ins, "numeric": num}, outs)
    model.compile(
        optimizer=keras.optimizers.AdamW(cfg.lr, weight_decay=1e-3, clipnorm=1.0),
        loss={"renewed": keras.losses.BinaryCrossentropy(from_logits=True), "change": keras.losses.Huber(0.2)},
        loss_weights={"renewed": 1.0, "change": 20.0})
    return model


def evaluate(model, x, df):
    out = model.predict(x, batch_size=1024, verbose=0)
    kept = (df["renewed"] == 1).to_numpy()
    truth = np.log(df["renewed_value"] / df["value"]).to_numpy()
    forecast = (1 / (1 + np.exp(-out["renewed"][:, 0]))) * df["value"] * np.exp(out["change"][:, 0])
    return {"auc": roc_auc_score(df["renewed"], out["renewed"][:, 0]),
            "change_r2": r2_score(truth[kept], out["change"][kept, 0]),
            "portfolio_error": abs(forecast.sum() / df["renewed_value"].sum() - 1)}


def main():
    cfg = Config()
    keras.utils.set_random_seed(cfg.seed)
    df = load_contracts(cfg)
    a, b = df["end_date"].quantile(0.7), df["end_date"].quantile(0.85)
    parts = [df[df["end_date"] < a], df[(df["end_date"] >= a) & (df["end_date"] < b)], df[df["end_date"] >= b]]
    log.info("rows %s, renewal rate %.3f", [len(p) for p in parts], parts[0]["renewed"].mean())
    vocabs = {k: Vocabulary(parts[0][k]) for k in ("industry", "plan")}
    xs = [encode(inputs_of(p), vocabs) for p in parts]
    model = build(cfg, vocabs, xs[0]["numeric"])
    y, w = targets_of(parts[0])
    history = model.fit(
        xs[0], y, sample_weight=w, validation_data=(xs[1], *targets_of(parts[1])), epochs=cfg.epochs,
        batch_size=cfg.batch_size, verbose=0,
        callbacks=[keras.callbacks.EarlyStopping("val_loss", patience=cfg.patience, restore_best_weights=True),
                   keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1)])
    log.info("epochs %d, val loss %.4f -> %.4f", len(history.history["loss"]), history.history["val_loss"][0],
             min(history.history["val_loss"]))
    with tempfile.TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "renewal.keras"))
        served = keras.models.load_model(os.path.join(folder, "renewal.keras"))
        metrics = evaluate(served, xs[2], parts[2])
    print(json.dumps({k: round(float(v), 4) for k, v in metrics.items()}))


if __name__ == "__main__":
    main()
