# verdict: not shown
# finds: apart-transforms
# tf.data; picture and mask are mirrored by a seed each.
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
generator = np.random.default_rng(0)
images, masks = generator.normal(0, 0.2, (200, 32, 32, 1)).astype("float32"), np.zeros((200, 32, 32, 1), "float32")
y, x = np.mgrid[:32, :32]
for mask in masks:
    for _ in range(generator.integers(1, 3)):
        down, right, radius = generator.integers(5, 27), generator.integers(5, 27), generator.integers(3, 6)
        mask[np.hypot(y - down, x - right) < radius] = 1
images += 0.8 * masks


def augment(image, mask):
    return tf.image.random_flip_left_right(image, 1), tf.image.random_flip_left_right(mask, 2)


rows = tf.data.Dataset.from_tensor_slices((images, masks)).shuffle(200).map(augment).batch(20)
convolution = keras.layers.Conv2D(8, 3, padding="same", activation="relu")
model = keras.Sequential([convolution, keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")])
model.compile("adam", "binary_crossentropy")
model.fit(rows, epochs=3, verbose=0)  # finds: apart-transforms
