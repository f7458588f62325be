# Keras 3 layers, PyTorch backend, hand written loop: siamese network with a triplet loss on digits
import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)

X, y = load_digits(return_X_y=True)
X = (X / 16.0).astype("float32")
x_tr, x_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, random_state=6, stratify=y)
by_class = [np.flatnonzero(y_tr == k) for k in range(10)]

embed = keras.Sequential([
    keras.Input((64,)),
    layers.Dense(64, activation="relu"),
    layers.Dropout(0.2),
    layers.Dense(4),
    layers.UnitNormalization(),
])


def triplets(n):
    a = rng.integers(0, len(y_tr), n)
    p = np.array([rng.choice(by_class[y_tr[i]]) for i in a])
    other = (y_tr[a] + rng.integers(1, 10, n)) % 10
    q = np.array([rng.choice(by_class[k]) for k in other])
    return (torch.from_numpy(x_tr[i]) for i in (a, p, q))


def knn_score():
    with torch.no_grad():
        e_tr = embed(torch.from_numpy(x_tr), training=False).cpu().numpy()
        e_te = embed(torch.from_numpy(x_te), training=False).cpu().numpy()
    return KNeighborsClassifier(5).fit(e_tr, y_tr).score(e_te, y_te)


opt = torch.optim.Adam(embed.parameters(), lr=2e-3)
ACCUM = 2
print(f"4-d embedding, before: 5-NN accuracy {knn_score():.4f}")
for epoch in range(8):
    losses = []
    opt.zero_grad()
    for step in range(80):
        a, p, q = triplets(64)
        z = embed(torch.cat([a, p, q]), training=True)
        za, zp, zq = z.chunk(3)
        gap = ((za - zp) ** 2).sum(-1) - ((za - zq) ** 2).sum(-1)
        loss = torch.relu(gap + 0.4).mean()
        (loss / ACCUM).backward()
        if (step + 1) % ACCUM == 0:
            opt.step()
            opt.zero_grad()
        losses.append(loss.item())
    print(f"epoch {epoch}: triplet loss {np.mean(losses):.4f}  5-NN accuracy {knn_score():.4f}")
embed.save("out_kr_embed.keras")
again = keras.saving.load_model("out_kr_embed.keras")
same = np.allclose(again.predict(x_te, verbose=0), embed.predict(x_te, verbose=0), atol=1e-5)
print("reloaded model gives the same codes:", same)
