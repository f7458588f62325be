"""`evaluate.load` without a download: accuracy and F1 of classes."""

from types import ModuleType
from typing import Any


class Metric:
    """What programs call of a metric of `evaluate`."""

    def __init__(self) -> None:
        self._guesses: list[Any] = []
        self._truths: list[Any] = []

    def add_batch(self, *, predictions: Any, references: Any) -> None:
        """Keep them for `compute`."""
        self._guesses += [int(p) for p in predictions]
        self._truths += [int(r) for r in references]

    def compute(self, *, predictions: Any = None, references: Any = None, **_: Any) -> dict[str, float]:
        """Accuracy and F1 of what was kept, or of what is given."""
        from sklearn.metrics import accuracy_score, f1_score

        if predictions is not None:
            self.add_batch(predictions=predictions, references=references)
        guesses, truths = self._guesses, self._truths
        self._guesses, self._truths = [], []
        average = "binary" if set(truths) <= {0, 1} else "macro"
        return {
            "accuracy": float(accuracy_score(truths, guesses)),
            "f1": float(f1_score(truths, guesses, average=average)),
        }


def fill(module: ModuleType) -> None:
    """Put it in place of `evaluate.load`."""
    module.load = lambda *args, **kwargs: Metric()  # type: ignore[attr-defined]
