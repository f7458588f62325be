"""What a real run is seen to do: its losses, how well scores agree with targets, and what it reports of itself."""

import contextlib
import functools
import inspect
from typing import Any

_KEPT_SCORES = 4096  # calls of loss functions: the last quarter of more is still recent


class Record:
    """What is seen of a run, in the order in which it happens."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.scored: dict[str, list[tuple[Any, ...]]] = {"train": [], "eval": []}
        self.reported: dict[str, float] = {}
        self.history: list[float] = []

    def outcome(self) -> dict[str, Any]:
        losses = self.history or self.losses
        return {
            "train_loss": _last_quarter_mean(losses),
            "train_score": _score(self.scored["train"]),
            "eval_score": _score(self.scored["eval"]),
            "reported": {k: v for k, v in self.reported.items() if isinstance(v, float)},
        }


def _last_quarter_mean(values: list[float]) -> float | None:
    last = values[-max(1, len(values) // 4) :]
    return sum(last) / len(last) if last else None


def _score(calls: list[tuple[Any, ...]]) -> float | None:
    """Accuracy of classes, or R2 of numbers, over the last quarter of calls; None where there were none.

    Each call is (kind, ...): ("classes", right, counted) or ("numbers", squared error, sum, sum of squares, counted).
    """
    last = calls[-max(1, len(calls) // 4) :]
    if not last:
        return None
    classes = [c for c in last if c[0] == "classes"]
    if len(classes) * 2 >= len(last):
        counted = sum(c[2] for c in classes)
        return sum(c[1] for c in classes) / counted if counted else None
    numbers = [c for c in last if c[0] == "numbers"]
    error, total, squares, counted = (sum(c[i] for c in numbers) for i in (1, 2, 3, 4))
    spread = squares - total * total / counted if counted else 0.0
    return 1 - error / spread if spread > 0 else None


_LOSSES = {
    "cross_entropy": "classes",
    "nll_loss": "classes",
    "binary_cross_entropy": "binary",
    "binary_cross_entropy_with_logits": "logits",
    "multilabel_soft_margin_loss": "logits",
    "mse_loss": "numbers",
    "l1_loss": "numbers",
    "smooth_l1_loss": "numbers",
    "huber_loss": "numbers",
    "poisson_nll_loss": None,
}


def watch_torch(torch: Any, record: Record) -> None:
    functional = torch.nn.functional
    for name, kind in _LOSSES.items():
        if kind:
            setattr(functional, name, _scoring(torch, getattr(functional, name), kind, record))

    def noting(loss: Any) -> None:
        tensors = loss if isinstance(loss, (tuple, list)) else [loss]
        with contextlib.suppress(Exception):
            record.losses.append(float(sum(t.detach().float().sum() for t in tensors)))

    tensor_backward, backward = torch.Tensor.backward, torch.autograd.backward

    @functools.wraps(tensor_backward)
    def of_tensor(self: Any, *args: Any, **kwargs: Any) -> Any:
        noting(self)
        return tensor_backward(self, *args, **kwargs)

    @functools.wraps(backward)
    def of_all(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if inspect.stack(0)[1].function != "backward":  # Tensor.backward has noted it
            noting(tensors)
        return backward(tensors, *args, **kwargs)

    torch.Tensor.backward, torch.autograd.backward = of_tensor, of_all


def _scoring(torch: Any, function: Any, kind: str, record: Record) -> Any:
    @functools.wraps(function)
    def scored(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(input, target, *args, **kwargs)
        with contextlib.suppress(Exception), torch.no_grad():
            calls = record.scored["train" if getattr(result, "requires_grad", False) else "eval"]
            calls.append(_agreement(torch, kind, input.detach(), target.detach(), kwargs))
            del calls[:-_KEPT_SCORES]
        return result

    return scored


def _agreement(torch: Any, kind: str, input: Any, target: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    if kind == "classes":
        guess = input.argmax(1) if input.dim() > 1 else input.argmax(0)
        target = target.argmax(1) if target.is_floating_point() else target
        counted = target != kwargs.get("ignore_index", -100)
        return "classes", int(((guess == target) & counted).sum()), int(counted.sum())
    if kind in ("binary", "logits"):
        yes = input > (0.5 if kind == "binary" else 0.0)
        return "classes", int((yes == (target > 0.5)).sum()), target.numel()
    input, target = torch.broadcast_tensors(input.double(), target.double())
    error = float(((input - target) ** 2).sum())
    return "numbers", error, float(target.sum()), float((target**2).sum()), target.numel()


def watch_trainer(module: Any, record: Record) -> None:
    """Keep the last of each number in the log of a Trainer."""
    trainer = module.Trainer
    log = trainer.log

    @functools.wraps(log)
    def logged(self: Any, logs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        for key, value in logs.items():
            if isinstance(value, (int, float)) and "runtime" not in key and "per_second" not in key:
                record.reported[key] = float(value)
        return log(self, logs, *args, **kwargs)

    trainer.log = logged


def watch_lightning(module: Any, record: Record) -> None:
    fit = module.Trainer.fit

    @functools.wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = fit(self, *args, **kwargs)
        for key, value in self.callback_metrics.items():
            with contextlib.suppress(Exception):
                record.reported[key] = float(value)
        return result

    module.Trainer.fit = fitted


def watch_keras(keras: Any, record: Record) -> None:
    fit = keras.Model.fit

    @functools.wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        history = fit(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            record.history.extend(history.history.get("loss", ()))
            for key, values in history.history.items():
                record.reported[key] = float(values[-1])
        return history

    keras.Model.fit = fitted
