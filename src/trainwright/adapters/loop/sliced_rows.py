"""The rows of a loop without a loader: rows of the script's tensors, paired as in the batches."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from trainwright.adapters.data.odd_rows import RowStep
from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.loop.turn import Turn
from trainwright.core import Place, Repair, Seam
from trainwright.probes.labels.alignment import MOST_ROWS
from trainwright.seams.isolation.silence import muted
from trainwright.seams.listening.seen import quiet
from trainwright.seams.loops.found_loops import Loop, callers
from trainwright.seams.source.places import show
from trainwright.seams.source.written import assignment_place, names_of
from trainwright.timing import now

Views = Sequence[Mapping[str, Any]]

# Number of rows of each batch to look up in the tensors that it is cut from.
LOOKED_UP = 4
# Time limit for forming batches, if only they show which label belongs to which row.
SECONDS = 2.0
# The same, and how many batches, if they show in which order the labels come.
ORDER_SECONDS, MOST_BATCHES = 1.0, 64


class Columns:
    """Tensors or arrays with equally many rows, as a map-style dataset.

    Args:
        drawn: the rows are those of batches, which may hold a row more than once.
    """

    def __init__(self, columns: Mapping[str, Any], *, drawn: bool = False) -> None:
        self.columns = columns
        self.drawn = drawn

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {k: v[row] for k, v in self.columns.items()}


def rows_of_script(training: LoopTraining, label: str | None) -> tuple[Columns | None, Place | None]:
    """The rows that the first batches are cut from, and the line that gives the loop its labels."""
    views = [training.view(turn) for turn in training.take(len(training.items), seed=0)]
    found = {k: list(_sources([view.get(k) for view in views], training.scope)) for k in views[0]}
    found = {k: sources for k, sources in found.items() if sources}
    common = set.intersection(*({len(s) for s in sources} for sources in found.values())) if found else set()
    if not common:
        return None, None
    chosen = {k: [s for s in sources if len(s) == min(common)] for k, sources in found.items()}
    columns = {k: sources[0] for k, sources in chosen.items()}
    if not columns.keys() - {label} or len(columns) < 2:
        return Columns(columns), None
    widest = max((k for k in columns if k != label), key=lambda k: columns[k][0].numel())
    columns = _paired(views, widest, {k: s for k, s in chosen.items() if k != label}) | {
        k: s for k, s in columns.items() if k == label
    }
    if label not in columns:
        return Columns(columns), None
    beside = [s for s in chosen[label] if _pairs_as(views, widest, columns[widest], label, s)]
    if beside:
        return Columns({**columns, label: beside[0]}), _made_at(training, beside[0])
    if not _side_by_side(views[0], label):
        return None, None
    return Columns(_as_batched(training, tuple(columns)), drawn=True), _read_at(training, columns[label])


def drawn_rows(training: LoopTraining, data: Columns) -> set[int]:
    """The rows of the script's tensors that the first batches contain; others may be for evaluation."""
    found: set[int] = set()
    for turn in training.take(len(training.items), seed=0):
        view = training.view(turn)
        names = [n for n in data.columns if isinstance(view.get(n), torch.Tensor)]
        if not names:
            continue
        widest = max(names, key=lambda n: data.columns[n][0].numel())
        for row in view[widest] if view[widest].dim() else ():
            found |= set(_where(data.columns[widest], row).nonzero().flatten().tolist())
    return found


def _sources(batches: Sequence[Any], scope: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """The script's tensors and arrays that contain the first rows of all these batches."""
    for value in scope.values():
        if not isinstance(value, (torch.Tensor, np.ndarray)) or not value.ndim:
            continue
        if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":  # texts, dates, objects
            continue
        data = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
        if data.layout != torch.strided:  # a graph's sparse matrix has no rows to compare
            continue
        if not data.requires_grad and all(_holds(data, batch) for batch in batches):
            yield data


def _holds(data: torch.Tensor, batch: Any) -> bool:
    if not isinstance(batch, torch.Tensor) or not batch.dim() or not len(batch) or batch.layout != torch.strided:
        return False
    if data.shape[1:] != batch.shape[1:] or len(data) < len(batch):
        return False
    return bool(_where(data, batch[0]).any())


def _where(data: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """The indices of rows equal to this one."""
    return (data.cpu() == row.detach().to(data.dtype).cpu()).reshape(len(data), -1).all(dim=1)


def _paired(views: Views, widest: str, chosen: Mapping[str, Sequence[torch.Tensor]]) -> dict[str, torch.Tensor]:
    """For each input, the tensor whose rows are paired with the widest input's as in the batches; those without one are
    left out. Numbers of users and of items, for example, occur in each other's columns."""
    found: dict[str, torch.Tensor] = {}
    for source in chosen[widest]:
        beside = {
            k: next((s for s in sources if _pairs_as(views, widest, source, k, s)), None)
            for k, sources in chosen.items()
            if k != widest
        }
        paired = {widest: source, **{k: s for k, s in beside.items() if s is not None}}
        found = paired if len(paired) > len(found) else found
    return {k: found[k] for k in chosen if k in found}


def _pairs_as(views: Views, name: str, data: torch.Tensor, label: str, labels: torch.Tensor) -> bool:
    """Whether rows paired in a batch are also paired in these tensors."""
    for view in views:
        inputs, targets = view[name], view[label]
        if len(inputs) != len(targets):
            return True  # not one label per row
        for row in np.linspace(0, len(inputs) - 1, LOOKED_UP).astype(int):
            here = _where(data, inputs[row])
            if bool(here.any()) and not bool((here & _where(labels, targets[row])).any()):
                return False
    return True


def _side_by_side(view: Mapping[str, Any], label: str) -> bool:
    """Whether every tensor that the model receives has as many rows as there are labels: all begin with that axis."""
    tensors = [v for v in view.values() if isinstance(v, torch.Tensor) and v.dim()]
    return all(len(v) == len(view[label]) for v in tensors)


def _as_batched(training: LoopTraining, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """The rows of as many batches as time allows."""
    started, parts = now(), []
    with quiet(), muted():
        for number, item in enumerate(itertools.chain(training.items, _further(training))):
            view = training.view(Turn(number, item=item))
            parts.append({n: view[n].detach().cpu() for n in names})
            late = now() - started > SECONDS
            if late or sum(len(p[names[0]]) for p in parts) >= MOST_ROWS:
                break
    return {n: torch.cat([p[n] for p in parts]) for n in names}


def labels_of_batches(training: LoopTraining) -> list[np.ndarray]:
    """The labels of consecutive batches, as many as time allows, as the loss gets them."""
    started, found = now(), list[np.ndarray]()
    with quiet(), muted():
        for number, item in enumerate(itertools.chain(training.items, _further(training))):
            labels = training.label_of(Turn(number, item=item))
            if not isinstance(labels, torch.Tensor):
                break
            found.append(labels.detach().cpu().numpy())
            if now() - started > ORDER_SECONDS or len(found) == MOST_BATCHES:
                break
    return found


def step_on_columns(training: LoopTraining, data: Columns, rows: Sequence[int]) -> RowStep | None:
    """A step whose first batch has these rows instead of its own; None if the batch has other columns as well."""
    view = training.view(Turn(0))
    tensors = {k for k, v in view.items() if isinstance(v, torch.Tensor) and v.dim()}
    if not tensors <= set(data.columns):
        return None
    chosen = {k: torch.stack([torch.as_tensor(data[row][k]) for row in rows]).to(view[k]) for k in tensors}
    other = Repair("other rows", Seam.BATCH, lambda call: call.replace(**chosen))
    training.reset()
    training.active.tried.append(other)
    try:
        with training.ready(0):
            record, _ = training.observe(Turn(0))
    finally:
        training.active.tried.remove(other)
        training.reset()
    return RowStep(failure=str(record.failure) if record.failure is not None else "", loss=record.loss)


def _further(training: LoopTraining) -> Iterator[Any]:
    """What the loop iterates over after its first items."""
    return itertools.islice(training.body.items(), len(training.items), None)


def _made_at(training: LoopTraining, labels: torch.Tensor) -> Place | None:
    """The last line before the loop that assigns the label tensor."""
    loop = getattr(training.body, "loop", None)
    for frame in [loop.frame, *callers(loop.frame)] if isinstance(loop, Loop) else ():
        for name in names_of(labels, frame):
            place = assignment_place(frame.f_code.co_filename, name, frame.f_lineno, of_call=False)
            if place is not None:
                return place
    return None


def _read_at(training: LoopTraining, labels: torch.Tensor) -> Place | None:
    """The first line of the loop that reads from the label tensor."""
    loop = getattr(training.body, "loop", None)
    if not isinstance(loop, Loop):
        return None
    names = {n for n, v in training.scope.items() if v is labels}
    known = (n for n in ast.walk(loop.node) if isinstance(n, (ast.Name, ast.Attribute)))
    read = [n.lineno for n in known if (n.id if isinstance(n, ast.Name) else n.attr) in names]
    return Place(show(loop.file), min(read)) if read else None
