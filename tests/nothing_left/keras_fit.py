"""A Keras training whose data write, log and summarize."""

import os, logging
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import numpy as np, keras, tensorflow as tf
logging.basicConfig(filename="train.log", level=logging.INFO)
log = logging.getLogger("mine"); log.info("begin")
out = open("out.txt", "w"); out.write("head\n"); out.flush()
if os.environ.get("STOP"): raise SystemExit(0)
w = tf.summary.create_file_writer("tb")
w.set_as_default(); tf.summary.scalar("a", 1.0, step=0); w.flush()
class Data(keras.utils.PyDataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        g = np.random.default_rng(i); x = g.normal(size=(16, 8)).astype("float32")
        log.info("batch"); out.write("b"); open("new.txt", "a").write("x"); tf.summary.scalar("b", 1.0, step=i)
        return x, (x.sum(1) > 0).astype("int32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(Data(), epochs=20, callbacks=[keras.callbacks.TensorBoard("tb2"), keras.callbacks.CSVLogger("log.csv"), keras.callbacks.ModelCheckpoint("best.keras")])
model.save("final.keras")
