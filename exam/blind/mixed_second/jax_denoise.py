# backends: jax
"""Denoising autoencoder on digits with the loop written out in JAX; batch norm state is threaded through; averaged weights."""
from functools import partial
import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

SEED, BATCH, EPOCHS, SIGMA, DECAY = 0, 50, 20, .35, .98
keras.utils.set_random_seed(SEED)

x = (load_digits().data / 16).astype("float32")
order = np.random.default_rng(SEED).permutation(len(x))
xa, xb = x[order[:1300]], x[order[1300:]]

model = keras.Sequential([keras.Input((64,)), layers.Dense(128), layers.BatchNormalization(momentum=.9),
                          layers.Activation("gelu"), layers.Dense(24, activation="gelu"),
                          layers.Dense(128, activation="gelu"), layers.Dense(64, activation="sigmoid")])
opt = keras.optimizers.Adam(3e-3)
opt.build(model.trainable_variables)


def loss_fn(tv, ntv, noisy, clean):
    out, ntv = model.stateless_call(tv, ntv, noisy, training=True)
    return jnp.mean((out - clean) ** 2), ntv


@partial(jax.jit, donate_argnums=0)
def epoch_step(carry, batches):
    """A whole epoch in one scan."""
    def body(carry, clean):
        tv, ntv, ov, avg, key = carry
        key, sub = jax.random.split(key)
        noisy = clean + SIGMA * jax.random.normal(sub, clean.shape)
        (loss, ntv), g = jax.value_and_grad(loss_fn, has_aux=True)(tv, ntv, noisy, clean)
        tv, ov = opt.stateless_apply(ov, g, tv)
        avg = jax.tree.map(lambda a, p: DECAY * a + (1 - DECAY) * p, avg, tv)
        return (tv, ntv, ov, avg, key), loss
    return jax.lax.scan(body, carry, batches)


@jax.jit
def denoise(tv, ntv, noisy):
    return model.stateless_call(tv, ntv, noisy, training=False)[0]


copy = lambda vs: [jnp.array(v.value) for v in vs]
carry = (copy(model.trainable_variables), copy(model.non_trainable_variables), copy(opt.variables),
         copy(model.trainable_variables), jax.random.PRNGKey(SEED))
noise = np.random.default_rng(SEED + 1).normal(0, SIGMA, xb.shape).astype("float32")
print(f"noisy input MSE {np.mean(noise ** 2):.4f}, mean image {np.mean((xa.mean(0) - xb) ** 2):.4f}, "
      f"clipped input {np.mean((np.clip(xb + noise, 0, 1) - xb) ** 2):.4f}")
rng = np.random.default_rng(SEED + 2)
for e in range(1, EPOCHS + 1):
    batches = xa[rng.permutation(len(xa))].reshape(-1, BATCH, 64)
    carry, losses = epoch_step(carry, batches)
    if e % 5 == 0:
        raw = float(np.mean((denoise(carry[0], carry[1], xb + noise) - xb) ** 2))
        avg = float(np.mean((denoise(carry[3], carry[1], xb + noise) - xb) ** 2))
        print(f"epoch {e} train {float(losses.mean()):.4f} held-out MSE {raw:.4f} averaged weights {avg:.4f}")
