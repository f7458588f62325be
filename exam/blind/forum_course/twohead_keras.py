# two outputs keras model: digit + "how much ink", phase 1 frozen, phase 2 fine tuning
# works for me with keras 3, old code from tf 1.x ported
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import argparse
import tempfile
import numpy as np
import keras
from keras import layers, ops
from sklearn.datasets import load_digits
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

P = argparse.ArgumentParser()
P.add_argument("--ae_epochs", type=int, default=7)
P.add_argument("--p1", type=int, default=7)
P.add_argument("--p2", type=int, default=7)
P.add_argument("--bs", type=int, default=32)
opt = P.parse_args()
keras.utils.set_random_seed(123)

d = load_digits()
imgs = (d.images / 16.0).astype("float32")[..., None]
lab = d.target
rs = np.random.RandomState(0)
# regression target on another scale, heavy noise on purpose like in the real sensor
ink = (imgs.sum((1, 2, 3)) * 40 + rs.normal(0, 25, len(imgs))).astype("float32")

# throw most of 0-4 away => unbalanced
keep = (lab >= 5) | (rs.rand(len(lab)) < 0.3)
x_lab, y_lab, i_lab = imgs[keep], lab[keep], ink[keep]
x_tr, x_te, y_tr, y_te, i_tr, i_te = train_test_split(
    x_lab, y_lab, i_lab, test_size=0.3, stratify=y_lab, random_state=4)
ink_norm = layers.Normalization(axis=None)
ink_norm.adapt(i_tr)
ink_mu, ink_var = (np.ravel(ops.convert_to_numpy(v))[0] for v in (ink_norm.mean, ink_norm.variance))
ink_back = lambda z: z * np.sqrt(ink_var) + ink_mu
it, ie = (np.asarray(ops.convert_to_numpy(ink_norm(v))).reshape(-1) for v in (i_tr, i_te))
print("class counts", np.bincount(y_tr))

enc = keras.Sequential([
    keras.Input((8, 8, 1)),
    layers.Conv2D(16, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
    layers.MaxPooling2D(),
    layers.Conv2D(32, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
    layers.Flatten(), layers.Dense(32),
], name="enc")
dec = keras.Sequential([keras.Input((32,)), layers.Dense(128, activation="relu"),
                        layers.Dense(64, activation="sigmoid"), layers.Reshape((8, 8, 1))], name="dec")

# phase 0: autoencoder, input is the target; the test pictures of phase 1 stay out
ae_in = keras.Input((8, 8, 1))
ae = keras.Model(ae_in, dec(enc(layers.GaussianNoise(0.15)(ae_in))))
ae.compile("adam", "binary_crossentropy")
h = ae.fit(x_tr, x_tr, epochs=opt.ae_epochs, batch_size=opt.bs, verbose=0)
print("autoencoder loss %.4f -> %.4f" % (h.history["loss"][0], h.history["loss"][-1]))

enc.trainable = False
inp = keras.Input((8, 8, 1))
z = enc(inp, training=False)
z = layers.Dropout(0.1)(z)
cls = layers.Dense(10, name="cls")(z)
reg = layers.Dense(1, name="reg")(layers.Dense(16, activation="relu")(z))
net = keras.Model(inp, {"cls": cls, "reg": reg})


def compile_net(lr):
    net.compile(optimizer=keras.optimizers.AdamW(lr, weight_decay=0.02),
                loss={"cls": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      "reg": keras.losses.Huber(delta=2.0)},
                loss_weights={"cls": 1.0, "reg": 1.0},
                weighted_metrics=[], metrics={"cls": ["accuracy"], "reg": ["mae"]})


cnt = np.bincount(y_tr, minlength=10)
w_cls = (len(y_tr) / (10.0 * cnt))[y_tr].astype("float32")
w_reg = np.ones(len(y_tr), "float32")


def phase(name, lr, epochs):
    compile_net(lr)
    print(name, "trainable weights:", len(net.trainable_weights))
    hist = net.fit(x_tr, {"cls": y_tr, "reg": it},
                   sample_weight={"cls": w_cls, "reg": w_reg},
                   validation_data=(x_te, {"cls": y_te, "reg": ie}),
                   epochs=epochs, batch_size=opt.bs, verbose=0,
                   callbacks=[keras.callbacks.LearningRateScheduler(lambda e, cur: cur if e < epochs // 2 else cur * 0.7)])
    for e in range(0, epochs, 3):
        print("  ep %d loss %.4f val acc %.4f" % (e, hist.history["loss"][e], hist.history["val_cls_accuracy"][e]))


phase("heads only", 1e-2, opt.p1)
enc.trainable = True
phase("everything", 2e-3, opt.p2)

f = os.path.join(tempfile.mkdtemp(), "net.weights.h5")
net.save_weights(f)
out = net.predict(x_te, verbose=0)
acc = (out["cls"].argmax(-1) == y_te).mean()
r2 = r2_score(i_te, ink_back(out["reg"][:, 0]))
print("FINAL acc=%.4f ink_r2=%.4f" % (acc, r2))
