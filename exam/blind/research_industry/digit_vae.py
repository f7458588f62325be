"""Variational autoencoder on 8x8 digits (Keras); reports reconstruction error and a latent linear probe."""
import os
from dataclasses import dataclass

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
from keras import layers, ops
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split


@dataclass
class VAEConfig:
    latent: int = 8
    width: int = 96
    beta: float = 1.0
    warmup_epochs: int = 5
    epochs: int = 30
    batch: int = 64
    lr: float = 2e-3
    seed: int = 13


class GaussianLatent(layers.Layer):
    """Reparameterised diagonal Gaussian; contributes beta * KL(q(z|x) || N(0, I)) to the model loss."""

    def __init__(self, latent, beta, **kwargs):
        super().__init__(**kwargs)
        self.stats = layers.Dense(2 * latent)
        self.seed_gen = keras.random.SeedGenerator(0)
        self.beta = self.add_weight(shape=(), initializer=keras.initializers.Constant(beta), trainable=False,
                                    name="beta")

    def call(self, h, training=False):
        mean, log_var = ops.split(self.stats(h), 2, axis=-1)
        log_var = ops.clip(log_var, -8.0, 4.0)
        kl = -0.5 * ops.sum(1 + log_var - ops.square(mean) - ops.exp(log_var), axis=-1)
        self.add_loss(self.beta * ops.mean(kl))
        if training:
            eps = keras.random.normal(ops.shape(mean), seed=self.seed_gen)
            return mean + ops.exp(0.5 * log_var) * eps
        return mean


class BetaWarmup(keras.callbacks.Callback):
    def __init__(self, layer, target, epochs):
        super().__init__()
        self.layer, self.target, self.epochs = layer, target, epochs

    def on_epoch_begin(self, epoch, logs=None):
        self.layer.beta.assign(self.target * min(1.0, (epoch + 1) / self.epochs))


def reconstruction_nll(x, logits):
    bce = ops.maximum(logits, 0.0) - logits * x + ops.log1p(ops.exp(-ops.abs(logits)))
    return ops.mean(bce, axis=-1)


def build(cfg, dim):
    x = keras.Input((dim,))
    h = layers.Dense(cfg.width, activation="gelu")(x)
    h = layers.Dense(cfg.width, activation="gelu")(h)
    bottleneck = GaussianLatent(cfg.latent, cfg.beta, name="latent")
    z = bottleneck(h)
    d = layers.Dense(cfg.width, activation="gelu")(z)
    d = layers.Dense(cfg.width, activation="gelu")(d)
    logits = layers.Dense(dim, name="pixels")(d)
    vae = keras.Model(x, logits)
    vae.compile(optimizer=keras.optimizers.Adam(cfg.lr), loss=reconstruction_nll)
    return vae, keras.Model(x, z), bottleneck


def load(seed):
    digits = load_digits()
    x = (digits.data / 16.0).astype("float32")
    return train_test_split(x, digits.target, test_size=0.3, random_state=seed, stratify=digits.target)


def probe(encoder, xtr, ytr, xte, yte):
    ztr, zte = (encoder.predict(v, batch_size=512, verbose=0) for v in (xtr, xte))
    mu, sd = ztr.mean(0), ztr.std(0) + 1e-8
    clf = LogisticRegression(max_iter=400).fit((ztr - mu) / sd, ytr)
    return clf.score((zte - mu) / sd, yte), ztr.std(0)


class EpochPrinter(keras.callbacks.Callback):
    def __init__(self, every):
        super().__init__()
        self.every = every

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every == 0:
            print(f"epoch {epoch + 1:3d} loss {logs['loss']:.4f} val {logs['val_loss']:.4f}")


def main():
    cfg = VAEConfig()
    keras.utils.set_random_seed(cfg.seed)
    xtr, xte, ytr, yte = load(cfg.seed)
    vae, encoder, bottleneck = build(cfg, xtr.shape[1])
    vae.fit(xtr, xtr, validation_data=(xte, xte), epochs=cfg.epochs, batch_size=cfg.batch, verbose=0,
            callbacks=[BetaWarmup(bottleneck, cfg.beta, cfg.warmup_epochs), EpochPrinter(5)])
    logits = vae.predict(xte, batch_size=512, verbose=0)
    recon = 1 / (1 + np.exp(-logits))
    mse = float(np.mean((recon - xte) ** 2))
    baseline = float(np.mean((xtr.mean(0) - xte) ** 2))
    acc, spread = probe(encoder, xtr, ytr, xte, yte)
    active = int((spread > 0.1).sum())
    print(f"test mse {mse:.4f} (mean-image {baseline:.4f}) | active units {active}/{cfg.latent} | probe acc {acc:.4f}")


if __name__ == "__main__":
    main()
