"""Staged transfer on 8x8 digits (Keras): train a backbone on 0-5, then adapt to 6-9 from few labelled images."""
import os
from dataclasses import dataclass

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


@dataclass
class Plan:
    source_epochs: int = 10
    head_epochs: int = 30
    tune_epochs: int = 10
    shots: int = 12
    width: int = 24
    source_lr: float = 3e-3
    head_lr: float = 1e-2
    tune_lr: float = 2e-4
    batch: int = 48
    seed: int = 44


def make_backbone(p):
    x = inp = keras.Input((8, 8, 1))
    for k, mult in enumerate((1, 2)):
        x = layers.Conv2D(p.width * mult, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.Activation("relu")(x)
        if k == 0:
            x = layers.MaxPooling2D()(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inp, x, name="backbone")


def with_head(backbone, classes, frozen_statistics):
    inp = keras.Input((8, 8, 1))
    feats = backbone(inp, training=False) if frozen_statistics else backbone(inp)
    return keras.Model(inp, layers.Dense(classes, name=f"head_{classes}")(feats))


def compile_for(model, lr):
    model.compile(
        optimizer=keras.optimizers.Adam(lr),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"])
    return model


def noisy_batches(x, y, p, rng):
    """Endless generator: additive noise, batches without replacement inside each pass."""
    size = min(p.batch, len(x))
    while True:
        order = rng.permutation(len(x))
        for s in range(0, len(order), size):
            idx = order[s:s + size]
            noise = rng.normal(0, 0.05, x[idx].shape).astype("float32")
            yield x[idx] + noise, y[idx]


def few_shot(y, shots, rng):
    return np.concatenate([rng.choice(np.flatnonzero(y == c), shots, replace=False) for c in np.unique(y)])


def load(seed):
    d = load_digits()
    x = (d.images / 16.0).astype("float32")[..., None]
    tr, te = train_test_split(np.arange(len(x)), test_size=0.4, stratify=d.target, random_state=seed)
    return x, d.target, tr, te


def fingerprint(model):
    return float(sum(np.abs(w).sum() for w in model.get_weights()))


def score(model, x, y):
    return model.evaluate(x, y, batch_size=512, verbose=0)[1]


def main():
    p = Plan()
    keras.utils.set_random_seed(p.seed)
    rng = np.random.default_rng(p.seed)
    x, y, tr, te = load(p.seed)
    src_tr, src_te = tr[y[tr] < 6], te[y[te] < 6]
    new_tr, new_te = tr[y[tr] >= 6], te[y[te] >= 6]

    backbone = make_backbone(p)
    source = compile_for(with_head(backbone, 6, frozen_statistics=False), p.source_lr)
    steps = int(np.ceil(len(src_tr) / p.batch))
    source.fit(noisy_batches(x[src_tr], y[src_tr], p, rng), steps_per_epoch=steps,
               epochs=p.source_epochs, verbose=0)
    print(f"source accuracy {score(source, x[src_te], y[src_te]):.4f}")

    support = new_tr[few_shot(y[new_tr], p.shots, rng)]
    xs, ys = x[support], y[support] - 6
    backbone.trainable = False
    target = compile_for(with_head(backbone, 4, frozen_statistics=True), p.head_lr)
    untrained = score(target, x[new_te], y[new_te] - 6)
    mark = fingerprint(backbone)
    target.fit(xs, ys, epochs=p.head_epochs, batch_size=p.batch, verbose=0)
    assert np.isclose(mark, fingerprint(backbone)), "backbone moved during head training"
    head_only = score(target, x[new_te], y[new_te] - 6)
    print(f"adapted head: {untrained:.4f} -> {head_only:.4f} with {len(support)} labelled images")

    backbone.trainable = True
    for layer in backbone.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.trainable = False
    compile_for(target, p.tune_lr)
    print("tuned tensors:", len(target.trainable_weights), "of", len(target.weights))
    target.fit(xs, ys, epochs=p.tune_epochs, batch_size=16, verbose=0,
               callbacks=[keras.callbacks.LearningRateScheduler(
                   lambda e: p.tune_lr * 0.5 * (1 + np.cos(np.pi * e / p.tune_epochs)))])
    print(f"final accuracy on the new classes {score(target, x[new_te], y[new_te] - 6):.4f}")


if __name__ == "__main__":
    main()
