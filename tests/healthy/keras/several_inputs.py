"""Two inputs by name, joined; standardized targets, Huber loss, AdamW with clipping and a cosine schedule."""

import keras
from keras import layers
from sklearn.datasets import load_diabetes

keras.utils.set_random_seed(0)
x, y = load_diabetes(return_X_y=True, scaled=False)
x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
body, blood = keras.Input((4,), name="body"), keras.Input((6,), name="blood")
joined = layers.Concatenate()([layers.Dense(16)(body), layers.Dense(16)(blood)])
joined = layers.Activation("silu")(layers.LayerNormalization()(joined))
model = keras.Model({"body": body, "blood": blood}, layers.Dense(1)(joined))
updates = 20 * (len(x) // 32 + 1)
schedule = keras.optimizers.schedules.CosineDecay(1e-4, updates, warmup_target=5e-3, warmup_steps=updates // 10)
model.compile(keras.optimizers.AdamW(schedule, weight_decay=0.01, clipnorm=1.0), loss=keras.losses.Huber())
model.fit({"body": x[:, :4], "blood": x[:, 4:]}, y, batch_size=32, epochs=20, verbose=2)
