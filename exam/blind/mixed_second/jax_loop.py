# backends: jax
"""Keras on JAX with a hand-written, jitted training step: diabetes progression from ten features."""
import jax
import keras
import numpy as np
from keras import layers, ops
from sklearn.datasets import load_diabetes

SEED = 0
EPOCHS, BATCH = 60, 32
keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)

x, y = load_diabetes(return_X_y=True, scaled=False)
order = rng.permutation(len(x))
tr, te = order[:320], order[320:]
y_mean, y_std = y[tr].mean(), y[tr].std()
target = ((y - y_mean) / y_std).astype("float32")
x = x.astype("float32")

inp = keras.Input((x.shape[1],))
h = layers.BatchNormalization(momentum=.9)(inp)
h = layers.Dense(32, activation="relu", kernel_regularizer=keras.regularizers.L2(1e-3))(h)
h = layers.BatchNormalization(momentum=.9)(h)
h = layers.Dropout(.2)(h)
model = keras.Model(inp, layers.Dense(1)(h))
optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(5e-3, EPOCHS * (len(tr) // BATCH)))
optimizer.build(model.trainable_variables)


def compute_loss(tv, ntv, xb, yb):
    pred, ntv, losses = model.stateless_call(tv, ntv, xb, training=True, return_losses=True)
    return ops.mean(ops.square(pred[:, 0] - yb)) + sum(losses), ntv


grad_fn = jax.value_and_grad(compute_loss, has_aux=True)


@jax.jit
def train_step(state, xb, yb):
    tv, ntv, ov = state
    (loss, _), grads = grad_fn(tv, ntv, xb, yb)
    tv, ov = optimizer.stateless_apply(ov, grads, tv)
    return loss, (tv, ntv, ov)


@jax.jit
def predict(tv, ntv, xb):
    return model.stateless_call(tv, ntv, xb, training=False)[0][:, 0]


def rmse(state, idx):
    p = np.asarray(predict(state[0], state[1], x[idx])) * y_std + y_mean
    return float(np.sqrt(np.mean((p - y[idx]) ** 2)))


state = ([v.value for v in model.trainable_variables],
         [v.value for v in model.non_trainable_variables],
         [v.value for v in optimizer.variables])
for epoch in range(1, EPOCHS + 1):
    losses = []
    p = rng.permutation(tr)
    for b in range(len(tr) // BATCH):
        idx = p[b * BATCH:(b + 1) * BATCH]
        loss, state = train_step(state, x[idx], target[idx])
        losses.append(float(loss))
    if epoch % 10 == 0:
        print(f"epoch {epoch} loss {np.mean(losses):.4f} test RMSE {rmse(state, te):.1f}")

for var, value in zip(model.trainable_variables + model.non_trainable_variables, state[0] + state[1]):
    var.assign(value)
pred = model.predict(x[te], verbose=0)[:, 0] * y_std + y_mean
print(f"test RMSE {np.sqrt(np.mean((pred - y[te]) ** 2)):.1f}, predicting the mean {np.sqrt(np.mean((y_mean - y[te]) ** 2)):.1f}")
