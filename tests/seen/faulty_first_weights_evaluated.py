# verdict: not shown
# finds: other-weights-evaluated
# The function that evaluates closes over the weights of the beginning; each update returns new ones.
import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
values = random.normal(size=(600, 8)).astype("float32")
kinds = (values @ random.normal(size=8) > 0).astype("int32")
weights = {"in": jnp.array(random.normal(size=(8, 16)) * 0.3), "out": jnp.array(random.normal(size=(16, 2)) * 0.3)}
first = weights


def loss_of(weights, x, y):
    scores = jnp.tanh(x @ weights["in"]) @ weights["out"]
    return -jax.nn.log_softmax(scores)[jnp.arange(len(y)), y].mean()


@jax.jit
def update(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.3 * g, weights, gradients), loss


def evaluate():
    return loss_of(first, values[400:], kinds[400:])


for epoch in range(12):
    for begin in range(0, 400, 50):
        weights, loss = update(weights, values[begin : begin + 50], kinds[begin : begin + 50])
    print(f"epoch {epoch} train loss {loss:.4f} test loss {evaluate():.4f}")
