# backends: torch
"""Two-tower retrieval in Keras: in-batch softmax with a correction for popular items; held-out last interaction per user."""
import keras
import numpy as np
from keras import layers, ops

SEED = 0
USERS, ITEMS, DIM, PER_USER = 400, 150, 16, 18


def interactions(rng):
    taste = rng.normal(size=(USERS, 4))
    style = rng.normal(size=(ITEMS, 4))
    pop = rng.normal(0, .8, ITEMS)
    logits = 1.6 * taste @ style.T + pop
    logits += rng.gumbel(size=logits.shape)
    ranked = np.argsort(-logits, 1)[:, :PER_USER]       # distinct items, sampled without replacement
    return np.stack([rng.permutation(r) for r in ranked])


class Tower(keras.Model):
    def __init__(self, n, **kw):
        super().__init__(**kw)
        self.emb = layers.Embedding(n, DIM)
        self.mix = layers.Dense(DIM)

    def call(self, i):
        z = self.emb(i)
        z = z + self.mix(ops.tanh(z))
        return z / ops.norm(z, axis=-1, keepdims=True)


class Retrieval(keras.Model):
    def __init__(self, log_q, **kw):
        super().__init__(**kw)
        self.user, self.item = Tower(USERS), Tower(ITEMS)
        self.log_q = ops.convert_to_tensor(log_q)
        self.scale = self.add_weight(shape=(), initializer=keras.initializers.Constant(8.0), name="scale")

    def call(self, inputs):
        u, i = inputs["user"], inputs["item"]
        # row b: user b against every item of the batch; sampled in proportion to popularity, so take log q off
        logits = self.scale * ops.matmul(self.user(u), ops.transpose(self.item(i))) - ops.take(self.log_q, i)[None]
        clash = ops.equal(i[:, None], i[None]) & ~ops.cast(ops.eye(ops.shape(i)[0]), "bool")
        logits = ops.where(clash, -1e9, logits)
        self.add_loss(ops.mean(ops.logsumexp(logits, axis=1) - ops.diagonal(logits)))
        return logits


def hit_rate(score, seen, target, k=10):
    score = score.copy()
    for u, items in enumerate(seen):
        score[u, items] = -np.inf
    rank = (score > score[np.arange(USERS), target][:, None]).sum(1)
    return (rank < k).mean()


keras.utils.set_random_seed(SEED)
table = interactions(np.random.default_rng(SEED))
seen, last = table[:, :-1], table[:, -1]
u = np.repeat(np.arange(USERS), PER_USER - 1)
i = seen.ravel()
count = np.bincount(i, minlength=ITEMS) + 1.0
model = Retrieval(np.log(count / count.sum()).astype("float32"))
model.compile(keras.optimizers.Adam(1e-2))


def evaluate():
    a = ops.convert_to_numpy(model.user(np.arange(USERS)))
    b = ops.convert_to_numpy(model.item(np.arange(ITEMS)))
    return hit_rate(a @ b.T, seen, last)


pop = hit_rate(np.repeat(count[None], USERS, 0), seen, last)
print(f"hit rate at 10: popularity {pop:.3f}, untrained {evaluate():.3f}")
for r in range(4):
    h = model.fit({"user": u, "item": i}, batch_size=256, epochs=3, verbose=0)
    print(f"epoch {3 * r + 3} loss {h.history['loss'][-1]:.3f} hit rate at 10 {evaluate():.3f}")
