"""Small made data in place of what a program of another author would download; on PYTHONPATH, so nobody imports it."""

import importlib

import wrapt

_STANDINS = {
    "torchvision.datasets.mnist": "pictures",
    "torchvision.datasets.cifar": "pictures",
    "keras.src.datasets.mnist": "pictures",
    "keras.src.datasets.fashion_mnist": "pictures",
    "keras.src.datasets.cifar10": "pictures",
    "keras.src.datasets.imdb": "words",
    "keras.src.datasets.reuters": "words",
    "datasets": "texts",
    "evaluate": "metrics",
    "torchvision.extension": "operators",
    "art.utils": "pictures",
}


def _stand_in(name: str, part: str) -> None:
    wrapt.register_post_import_hook(lambda module: importlib.import_module(f"standins.{part}").fill(module), name)


for _name, _part in _STANDINS.items():
    _stand_in(_name, _part)
