"""A small network learns from a larger one that stays as it is: compute_loss with both losses."""

import keras
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
exact = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


class Student(keras.Model):
    def __init__(self, teacher):
        super().__init__()
        self.teacher, self.hidden, self.out = teacher, layers.Dense(12, activation="relu"), layers.Dense(10)
        self.teacher.trainable = False

    def call(self, x):
        return self.out(self.hidden(x))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        soft = ops.softmax(self.teacher(x, training=False) / 3.0)
        near = ops.mean(ops.sum(soft * (ops.log(soft + 1e-9) - ops.log_softmax(y_pred / 3.0)), axis=-1))
        return 0.3 * super().compute_loss(x, y, y_pred, sample_weight) + 0.7 * 9.0 * near


teacher = keras.Sequential([keras.Input((64,)), layers.Dense(96, activation="relu"), layers.Dense(10)])
teacher.compile(optimizer=keras.optimizers.Adam(3e-3), loss=exact, metrics=["accuracy"])
teacher.fit(images, target, batch_size=32, epochs=4, verbose=2)
student = Student(teacher)
student.compile(optimizer=keras.optimizers.Adam(3e-3), loss=exact, metrics=["accuracy"])
student.fit(images, target, batch_size=32, epochs=4, verbose=2)
