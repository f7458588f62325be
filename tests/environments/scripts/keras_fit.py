import sys
import numpy as np
import keras
keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(400, 12)).astype("float32")
y = (x[:, :3].sum(1) > 0).astype(int) + (x[:, 3] > 0.5).astype(int) * (2 if "faulty" in sys.argv else 1)
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3, activation="softmax")])  # expect: label-out-of-range
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
if "api" in sys.argv:
    import trainwright
    from trainwright.report import json

    print(json.render(trainwright.check(model, x=x[:300], y=y[:300], validation_data=(x[300:], y[300:]), batch_size=32, epochs=3)))
else:
    model.fit(x[:300], y[:300], validation_data=(x[300:], y[300:]), batch_size=32, epochs=3, verbose=0)
