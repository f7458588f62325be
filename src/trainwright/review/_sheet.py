"""The sheet of a record: what was seen, in rows, with a mark where something stands out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from trainwright.core.sheet import Curve, OwnNumber, Sheet
from trainwright.rehearsal.record import Number, Record
from trainwright.review._sheet_answers import class_rows, columns, output_rows, scores
from trainwright.review._sheet_pieces import layer, pieces, rows_drawn

# Points of a curve: what a line of a terminal holds.
MOST_POINTS = 60
# Curves of the script's own numbers, and rows of them.
MOST_OWN_CURVES, MOST_OWN = 4, 16
# Share of an own number's range by which the kept weights are worse than the best.
KEPT_WORSE = 0.15

# Words of a number's name that say in which direction it is better, and those of numbers that judge nothing.
LOWER = {"loss", "err", "error", "mae", "mse", "rmse", "mape", "perplexity", "ppl", "wer", "cer", "nll", "bce"}
HIGHER = {
    "acc", "f1", "auc", "auroc", "roc", "r2", "bleu", "map", "iou", "miou", "dice", "exact", "em", "reward", "mcc", "top1",
    "top5",
}  # fmt: skip
HIGHER_BEGINNINGS = ("accura", "rouge", "precision", "recall")
COUNTERS = {
    "epoch", "epochs", "step", "steps", "iter", "iteration", "time", "runtime", "seconds", "second", "sec", "lr", "learning",
    "size", "seed", "flos", "norm", "samples", "memory", "eta",
}  # fmt: skip


def sheet_of(record: Record) -> Sheet:
    """What was seen of a script that ran."""
    own = _own_numbers(record.numbers)
    judged = next((n for n in own if n.best_update is not None and _is_held_out(n.name)), None)
    judged = judged or next((n for n in own if n.best_update is not None), None)
    kept = _kept_update(record)
    plans = [training.planned for training in record.trainings]
    return Sheet(
        updates=record.updates,
        planned=sum(plan or 0 for plan in plans) if plans and all(plans) else None,
        seconds=record.seconds,
        cut_at=_cut_at(record),
        end=_end(record),
        isolation=record.isolation,
        kept_away=record.kept_away,
        best_update=judged.best_update if judged else None,
        kept_update=kept,
        scores=scores(record),
        own=tuple(_with_kept(n, kept, record.numbers) if n is judged else n for n in own),
        classes=class_rows(record),
        outputs=output_rows(record),
        columns=columns(record),
        layers=tuple(map(layer, record.parameters)),
        curves=_curves(record, own),
        pieces=pieces(record),
        drawn=tuple(map(rows_drawn, record.drawn)),
    )


def higher_is_better(name: str) -> bool | None:
    """The direction of a number, by the words of its name; None: not known."""
    words = _words(name)
    if not COUNTERS.isdisjoint(words):
        return None
    if any(word in LOWER or word.endswith(("loss", "error")) for word in words):
        return False
    return True if any(word in HIGHER or word.startswith(HIGHER_BEGINNINGS) for word in words) else None


def _words(name: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in name.lower()).split()


def _is_held_out(name: str) -> bool:
    return any(word.startswith(("val", "eval", "test", "dev", "held")) for word in _words(name))


def _cut_at(record: Record) -> int | None:
    if record.ended.is_cut:
        return record.ended.update
    return next((t.ends for t in record.trainings if t.is_cut), None)


def _end(record: Record) -> str:
    if record.ended.failure is not None:
        return str(record.ended.failure)
    status = record.ended.status
    if not status:
        return ""
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _kept_update(record: Record) -> int | None:
    """After which update the weights were that the script has at its end, or saved last; None: it kept none."""
    by_weights = {kept.weights: kept.update for kept in record.kept}
    for loaded in reversed(record.loaded):
        if loaded.after in by_weights:
            return by_weights[loaded.after]
    return next((kept.update for kept in reversed(record.kept) if kept.how == "saved"), None)


def _own_numbers(numbers: Sequence[Number]) -> list[OwnNumber]:
    """Each name once, by its surest source: those of held-out rows first, then those with a direction."""
    series: dict[str, dict[str, list[Number]]] = defaultdict(lambda: defaultdict(list))
    for number in numbers:
        if COUNTERS.isdisjoint(_words(number.name)):
            series[number.name][number.source].append(number)
    rows = [_own(max(sources.values(), key=len)) for sources in series.values()]
    return sorted(rows, key=lambda row: (row.best is None, not _is_held_out(row.name), -row.count))[:MOST_OWN]


def _own(seen: list[Number]) -> OwnNumber:
    higher = higher_is_better(seen[0].name)
    finite = [n for n in seen if math.isfinite(n.value)]
    choose = max if higher else min
    best = choose(finite, key=lambda n: n.value) if finite and higher is not None else None
    return OwnNumber(
        name=seen[0].name,
        source=seen[0].source,
        count=len(seen),
        first=seen[0].value,
        last=seen[-1].value,
        best=best.value if best else None,
        best_update=best.update if best else None,
        mark="" if len(finite) == len(seen) else "not finite",
    )


def _with_kept(own: OwnNumber, kept: int | None, numbers: Sequence[Number]) -> OwnNumber:
    """The number that judges, marked if the kept weights are clearly worse by it than the best were."""
    seen = [n for n in numbers if (n.name, n.source) == (own.name, own.source) and math.isfinite(n.value)]
    values = [n.value for n in seen]
    if kept is None or own.best is None or own.mark or len(seen) < 3:
        return own
    at_kept = min(seen, key=lambda n: abs(n.update - kept)).value
    if abs(at_kept - own.best) <= KEPT_WORSE * (max(values) - min(values)):
        return own
    return OwnNumber(**{**vars(own), "mark": f"kept: update {kept:,}, not the best"})


def _curves(record: Record, own: Sequence[OwnNumber]) -> tuple[Curve, ...]:
    curves = [_curve("loss", record.losses)]
    optimizers = Counter(step.optimizer for step in record.steps)
    for count, (optimizer, _) in enumerate(optimizers.most_common(3), 1):
        of = f", optimizer {count}" if len(optimizers) > 1 else ""
        steps = [step for step in record.steps if step.optimizer == optimizer]
        curves.append(_curve(f"learning rate{of}", [(s.number, s.rate) for s in steps]))
        norms = [(s.number, s.gradient_norm) for s in steps if s.gradient_norm is not None]
        curves.append(_curve(f"gradient norm{of}", norms))
    for row in [row for row in own if row.best is not None and row.count > 2][:MOST_OWN_CURVES]:
        seen = [n for n in record.numbers if (n.name, n.source) == (row.name, row.source)]
        curves.append(_curve(row.name, [(n.update, n.value) for n in seen]))
    return tuple(curve for curve in curves if curve.updates)


def _curve(name: str, points: Sequence[tuple[int, float]]) -> Curve:
    """A curve of means over equally many points each; what is not finite remains."""
    wrong = next((update for update, value in points if not math.isfinite(value)), None)
    count = min(len(points), MOST_POINTS)
    edges = [round(i * len(points) / count) for i in range(count + 1)] if count else []
    parts = [points[begin:end] for begin, end in pairwise(edges)]
    return Curve(
        name=name,
        updates=tuple(part[-1][0] for part in parts),
        values=tuple(sum(value for _, value in part) / len(part) for part in parts),
        mark="" if wrong is None else f"not finite after update {wrong:,}",
    )
