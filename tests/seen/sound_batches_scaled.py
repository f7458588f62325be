# verdict: not shown
# finds: nothing
# Keras; a batch is copied into an array that the next one takes over, in an order that each epoch draws anew.
import keras
import numpy as np

keras.utils.set_random_seed(0)
generator = np.random.default_rng(0)
values = generator.normal(5, 2, (400, 6)).astype("float32")


class Batches(keras.utils.PyDataset):
    def __init__(self, values, labels):
        super().__init__()
        self.values, self.labels = values, labels
        self.order, self.batch = np.arange(len(values)), np.zeros((20, 6), "float32")

    def __len__(self):
        return len(self.values) // 20

    def on_epoch_end(self):
        np.random.shuffle(self.order)

    def __getitem__(self, number):
        rows = self.order[20 * number : 20 * number + 20]
        self.batch[:] = self.values[rows]
        self.batch -= 5
        return self.batch.copy(), self.labels[rows]


model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(Batches(values, (values[:, 0] > 5).astype(int)), epochs=6, verbose=0)
