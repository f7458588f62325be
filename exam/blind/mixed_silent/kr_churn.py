# customer churn (about 6 % leave), keras + class_weight + early stopping with restored weights
import os
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.compose import ColumnTransformer
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

n = 6000
df = pd.DataFrame({
    "tenure": rng.gamma(2, 14, n),
    "monthly": rng.normal(60, 18, n).clip(15),
    "calls": rng.poisson(1.2, n),
    "plan": rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.35, 0.15]),
    "region": rng.choice(list("NESW"), n),
})
score = (0.04 * (df.monthly - 60) + 0.9 * df.calls - 0.06 * df.tenure
         + df.plan.map({"basic": 0.8, "plus": 0.0, "pro": -1.0}) + rng.logistic(0, 0.6, n))
df["churn"] = (score > score.quantile(0.94)).astype(int)

train, test = train_test_split(df, test_size=0.25, stratify=df.churn, random_state=0)
train, valid = train_test_split(train, test_size=0.2, stratify=train.churn, random_state=0)
prep = ColumnTransformer([
    ("num", StandardScaler(), ["tenure", "monthly", "calls"]),
    ("cat", OneHotEncoder(), ["plan", "region"]),
], sparse_threshold=0).fit(train)
x_tr, x_va, x_te = (prep.transform(d).astype("float32") for d in (train, valid, test))

pos = train.churn.mean()
weights = {0: 0.5 / (1 - pos), 1: 0.5 / pos}
print("share of churn:", round(pos, 4), "weights:", weights)

model = keras.Sequential([
    keras.Input((x_tr.shape[1],)),
    layers.Dense(48, activation="relu", kernel_regularizer=keras.regularizers.l2(1e-4)),
    layers.Dropout(0.5),
    layers.Dense(24, activation="relu"),
    layers.Dropout(0.3),
    layers.Dense(1, activation="sigmoid"),
])
model.compile(
    optimizer=keras.optimizers.AdamW(3e-3),
    loss="binary_crossentropy",
    metrics=[keras.metrics.AUC(name="auc"), keras.metrics.AUC(curve="PR", name="pr")],
)
before = model.evaluate(x_va, valid.churn, verbose=0, return_dict=True)
print("untrained:", {k: round(v, 3) for k, v in before.items()})
stop = keras.callbacks.EarlyStopping("val_pr", mode="max", patience=6, restore_best_weights=True)
h = model.fit(x_tr, train.churn, validation_data=(x_va, valid.churn), epochs=30, batch_size=128,
              class_weight=weights, callbacks=[stop], verbose=0)
print("epochs run:", len(h.history["loss"]), "best val_pr:", round(max(h.history["val_pr"]), 4))

p = model.predict(x_te, verbose=0)[:, 0]
print(f"test ROC AUC {roc_auc_score(test.churn, p):.4f}  AP {average_precision_score(test.churn, p):.4f} "
      f"(chance {test.churn.mean():.3f})")
print(confusion_matrix(test.churn, p > 0.5))
