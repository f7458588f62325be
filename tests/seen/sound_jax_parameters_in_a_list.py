# verdict: learns
# finds: nothing
# tells: right at 0.9
# Parameters are a list of dicts, the step is compiled, and no optimizer holds them; the accuracy is computed outside of it.
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
centres = rng.normal(size=(4, 8)) * 1.5
labels = rng.integers(0, 4, 1200)
rows = (centres[labels] + rng.normal(size=(1200, 8))).astype(np.float32)
train_x, train_y, test_x, test_y = rows[:900], labels[:900], rows[900:], labels[900:]


def init(key, sizes=(8, 32, 4)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes, sizes[1:])
    ]


@jax.jit
def apply(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    logp = jax.nn.log_softmax(apply(params, x))
    return -jnp.mean(jnp.sum(logp * jax.nn.one_hot(y, 4), axis=1))


@jax.jit
def step(params, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


params = init(jax.random.key(0))
for epoch in range(5):
    order = rng.permutation(900)
    for at in range(0, 900, 30):
        batch = order[at : at + 30]
        params, loss = step(params, train_x[batch], train_y[batch])
    accuracy = jnp.mean(jnp.argmax(apply(params, test_x), axis=1) == test_y)
    print(f"epoch {epoch} loss {loss:.4f} test accuracy {accuracy:.4f}")
