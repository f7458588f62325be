"""Loan-status model (Keras): predicts the 12-month outcome of a loan from application data."""
import json
import logging
import os
from dataclasses import dataclass

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.compose import ColumnTransformer
from sklearn.metrics import balanced_accuracy_score, classification_report
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, OneHotEncoder, StandardScaler

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("loans")


@dataclass
class Config:
    n: int = 6000
    units: int = 48
    epochs: int = 15
    batch_size: int = 128
    lr: float = 2e-3
    patience: int = 4
    seed: int = 77


NUMERIC = ["income_log", "dti", "utilisation", "age", "prior_delinquencies"]
CATEGORICAL = ["purpose", "housing"]


def load_applications(cfg):
    rng = np.random.default_rng(cfg.seed)
    df = pd.DataFrame({
        "income_log": rng.normal(10.5, 0.5, cfg.n),
        "dti": rng.beta(2, 5, cfg.n),
        "utilisation": rng.beta(2, 3, cfg.n),
        "age": rng.integers(21, 75, cfg.n),
        "prior_delinquencies": rng.poisson(0.4, cfg.n),
        "purpose": rng.choice(["car", "consolidation", "home", "medical"], cfg.n, p=[0.3, 0.4, 0.2, 0.1]),
        "housing": rng.choice(["own", "rent", "mortgage"], cfg.n),
    })
    stress = (3.0 * (df["dti"] - 0.29) * 2 + 2.2 * (df["utilisation"] - 0.4) + 0.8 * df["prior_delinquencies"]
              - 1.2 * (df["income_log"] - 10.5) + 0.6 * (df["purpose"] == "medical"))
    prepay = 0.05 * (df["age"] - 45) + 1.0 * (df["housing"] == "own") - 0.5 * (df["purpose"] == "home")
    logits = np.stack([1.5 * stress - 4.4, np.zeros(cfg.n), 1.1 * stress - 2.7, 1.6 * prepay - 3.2], axis=1)
    noisy = logits + rng.gumbel(size=logits.shape)
    names = np.array(["charged_off", "current", "late", "prepaid"])
    df["status"] = names[noisy.argmax(1)]
    return df


def class_weights(status):
    counts = pd.Series(status).value_counts()
    weights = len(status) / (len(counts) * counts.to_numpy())
    return {k: float(w) for k, w in enumerate(weights)}


def prepare(df, cfg):
    train, test = train_test_split(df, test_size=0.25, stratify=df["status"], random_state=cfg.seed)
    train, valid = train_test_split(train, test_size=0.2, stratify=train["status"], random_state=cfg.seed)
    pre = ColumnTransformer([
        ("num", StandardScaler(), NUMERIC),
        ("cat", OneHotEncoder(handle_unknown="ignore", sparse_output=False), CATEGORICAL),
    ]).fit(train)
    enc = LabelEncoder().fit(train["status"])
    out = [(pre.transform(p).astype("float32"), enc.transform(p["status"])) for p in (train, valid, test)]
    return out, enc, class_weights(enc.transform(train["status"]))


def build_model(n_in, n_out, cfg):
    inputs = keras.Input((n_in,))
    x = layers.Dense(cfg.units, activation="relu")(inputs)
    x = layers.Dropout(0.15)(x)
    x = layers.Dense(cfg.units, activation="relu")(x)
    model = keras.Model(inputs, layers.Dense(n_out, activation="softmax")(x))
    model.compile(optimizer=keras.optimizers.Adam(cfg.lr), loss="sparse_categorical_crossentropy",
                  metrics=["accuracy"])
    return model


class BalancedAccuracy(keras.callbacks.Callback):
    """Adds validation balanced accuracy to the epoch logs; place before callbacks that monitor it."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def on_epoch_end(self, epoch, logs=None):
        guess = self.model.predict(self.x, batch_size=1024, verbose=0).argmax(-1)
        logs["val_balanced_accuracy"] = balanced_accuracy_score(self.y, guess)


def main():
    cfg = Config()
    keras.utils.set_random_seed(cfg.seed)
    df = load_applications(cfg)
    log.info("status shares %s", df["status"].value_counts(normalize=True).round(3).to_dict())
    ((xtr, ytr), (xva, yva), (xte, yte)), enc, weights = prepare(df, cfg)
    log.info("class weights %s", {k: round(v, 2) for k, v in weights.items()})
    model = build_model(xtr.shape[1], len(enc.classes_), cfg)
    history = model.fit(
        xtr, ytr, validation_data=(xva, yva), epochs=cfg.epochs, batch_size=cfg.batch_size,
        class_weight=weights, verbose=0,
        callbacks=[BalancedAccuracy(xva, yva),
                   keras.callbacks.EarlyStopping("val_balanced_accuracy", mode="max", patience=cfg.patience,
                                                 restore_best_weights=True)])
    log.info("stopped after %d epochs", len(history.history["loss"]))
    guess = model.predict(xte, batch_size=1024, verbose=0).argmax(-1)
    report = classification_report(yte, guess, target_names=enc.classes_, output_dict=True, zero_division=0)
    print(json.dumps({
        "accuracy": round(report["accuracy"], 4),
        "balanced_accuracy": round(balanced_accuracy_score(yte, guess), 4),
        "macro_f1": round(report["macro avg"]["f1-score"], 4),
        "recall": {c: round(report[c]["recall"], 3) for c in enc.classes_},
    }))


if __name__ == "__main__":
    main()
