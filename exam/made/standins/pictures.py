"""Pictures: scanned digits as MNIST and the like, coloured stripes as CIFAR."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

_TRAIN, _TEST = 1024, 320


def fill(module: ModuleType) -> None:
    """Put made pictures in place of the downloads of a module of torchvision or Keras."""
    name = module.__name__.rpartition(".")[2]
    if name == "utils":
        module.load_mnist = functools.partial(_scaled, digits)  # type: ignore[attr-defined]
        module.load_cifar10 = functools.partial(_scaled, stripes)  # type: ignore[attr-defined]
        module.load_dataset = lambda of: _scaled(digits if of == "mnist" else stripes)  # type: ignore[attr-defined]
    elif module.__name__.startswith("keras"):
        module.load_data = _keras_stripes if name == "cifar10" else _keras_digits  # type: ignore[attr-defined]
    elif name == "mnist":
        module.MNIST.download = lambda self: None
        module.MNIST._check_exists = lambda self: True
        module.MNIST._load_data = lambda self: _tensors(*digits(self.train))
        module.EMNIST.download = lambda self: None
        module.EMNIST._check_exists = lambda self: True
        module.EMNIST._load_data = lambda self: _tensors(*digits(self.train))
    else:
        module.CIFAR10.__init__ = _init_stripes


@functools.cache
def digits(train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scanned digits of 28 x 28 points, as bytes, and which they are."""
    from PIL import Image
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(labels))
    chosen = order[:_TRAIN] if train else order[_TRAIN : _TRAIN + _TEST]
    small = (pictures[chosen].reshape(-1, 8, 8) * 15.9).astype("uint8")
    large = [np.asarray(Image.fromarray(p).resize((20, 20), Image.Resampling.BICUBIC)) for p in small]
    return np.pad(np.stack(large), ((0, 0), (4, 4), (4, 4))), labels[chosen].astype("int64")


@functools.cache
def stripes(train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 32 x 32 points in colour: stripes whose slope and tint tell the class, with noise."""
    chance = np.random.RandomState(0 if train else 1)
    labels = chance.randint(0, 10, _TRAIN if train else _TEST)
    across, down = np.meshgrid(np.arange(32), np.arange(32))
    slope = np.pi * (labels % 5) / 5
    where = np.cos(slope)[:, None, None] * across + np.sin(slope)[:, None, None] * down
    waves = np.sin(where * 0.7 + chance.uniform(0, 6.3, (len(labels), 1, 1)))
    tints = np.array([[1.0, 0.5, 0.3], [0.3, 0.6, 1.0]])[labels // 5]
    values = 128 + 70 * waves[..., None] * tints[:, None, None] + chance.normal(0, 25, (len(labels), 32, 32, 3))
    return values.clip(0, 255).astype("uint8"), labels.astype("int64")


def _tensors(pictures: np.ndarray, labels: np.ndarray) -> tuple[Any, Any]:
    import torch

    return torch.from_numpy(pictures.copy()), torch.from_numpy(labels.copy())


def _init_stripes(
    self: Any, root: Any = None, train: bool = True, transform: Any = None, target_transform: Any = None,
    download: bool = False,
) -> None:  # fmt: skip
    import torchvision

    torchvision.datasets.VisionDataset.__init__(self, root, transform=transform, target_transform=target_transform)
    self.train = train
    pictures, labels = stripes(train)
    self.data, self.targets = pictures.copy(), labels.tolist()
    self.classes = [f"class {i}" for i in range(10)]
    self.class_to_idx = {name: i for i, name in enumerate(self.classes)}


def _scaled(made: Any, raw: bool = False) -> Any:
    sets = []
    for train in (True, False):
        pictures, labels = made(train)
        if not raw:
            pictures = pictures.reshape(*pictures.shape[:3], -1).astype("float32") / 255
        sets.append((pictures, labels if raw else np.eye(10, dtype="float32")[labels]))
    return (*sets, 0.0, 255.0 if raw else 1.0)


def _keras_digits(path: str = "") -> Any:
    return tuple((p.copy(), y.astype("uint8")) for p, y in (digits(True), digits(False)))


def _keras_stripes() -> Any:
    return tuple((p.copy(), y.astype("uint8")[:, None]) for p, y in (stripes(True), stripes(False)))
