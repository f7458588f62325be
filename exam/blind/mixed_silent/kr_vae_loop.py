# VAE on digits, custom loop with GradientTape
import os
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)

x = (load_digits().data / 16.0).astype("float32")
x_train, x_test = train_test_split(x, test_size=0.2, random_state=0)
train_ds = tf.data.Dataset.from_tensor_slices(x_train).shuffle(2000).batch(64)

LATENT = 8

enc_in = keras.Input((64,))
h = layers.Dense(96, activation="relu")(enc_in)
mu = layers.Dense(LATENT, name="mu")(h)
sigma = layers.Dense(LATENT, activation="relu", name="sigma")(h)
encoder = keras.Model(enc_in, [mu, sigma], name="encoder")

dec_in = keras.Input((LATENT,))
h = layers.Dense(96, activation="relu")(dec_in)
dec_out = layers.Dense(64, activation="sigmoid")(h)
decoder = keras.Model(dec_in, dec_out, name="decoder")

opt = keras.optimizers.Adam(2e-3)


def elbo_terms(batch, training):
    m, s = encoder(batch, training=training)
    eps = tf.random.normal(tf.shape(m))
    z = m + s * eps
    rec = decoder(z, training=training)
    bce = tf.reduce_sum(keras.losses.binary_crossentropy(batch[..., None], rec[..., None]), axis=-1)
    kl = tf.reduce_sum(0.5 * (tf.square(m) + tf.square(s) - 1.0) - tf.math.log(s), axis=-1)
    return tf.reduce_mean(bce), tf.reduce_mean(kl)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        bce, kl = elbo_terms(batch, True)
        loss = bce + 0.5 * kl
    variables = encoder.trainable_weights + decoder.trainable_weights
    grads = tape.gradient(loss, variables)
    opt.apply_gradients(zip(grads, variables))
    return bce, kl


for epoch in range(20):
    logs = [train_step(b) for b in train_ds]
    bce = np.mean([float(a) for a, _ in logs])
    kl = np.mean([float(b) for _, b in logs])
    m, _ = encoder(x_test)
    mse = float(np.mean((decoder(m).numpy() - x_test) ** 2))
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:2d}  bce {bce:.3f}  kl {kl:.3f}  test mse {mse:.5f}")

print("test mse of the mean image:", float(np.mean((x_train.mean(0) - x_test) ** 2)))
print("test mse of the vae       :", mse)
decoder.save("out_kr_vae_decoder.keras")
