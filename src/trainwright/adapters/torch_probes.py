"""Probes of a torch model's forward pass: it is called again with something changed, and left as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from trainwright.core.repair import Repair, Seam
from trainwright.seams.place import failure_of
from trainwright.seams.snapshot import AttributeState, RandomState
from trainwright.seams.torch import Observer, first_tensor, scores_of
from trainwright.seams.torch_trace import Made, Trace, difference, first_difference, last_difference
from trainwright.stages.batch import real_positions

# A change of the output below this share of its scale is float32 rounding.
SAME_WITHIN = 1e-6
LEAKS_BEYOND = 1e-3
# Each weight is moved by this share of its tensor's scale, and by as much in absolute terms where it is zero.
PERTURBED_BY = 0.05
# More rows than this many times the batch are not tried.
MOST_ROWS_FACTOR = 4
# Numbers of rows that are tried when the first batch fails.
USUAL_ROWS = (1, 2, 4, 16, 32, 64, 128)
_TOKEN_KEYS = ("input_ids", "0")
# Tokenizers add these to every batch, wanted or not: whether they have an effect says nothing of the script.
_FROM_TOKENIZER = ("attention_mask", "token_type_ids", "special_tokens_mask")


@dataclass(kw_only=True)
class Probe:
    """The model and what it was really called with, so that it can be called again with something changed."""

    model: nn.Module
    inputs: dict[str, Any]
    """Keyword arguments, or "0", "1" for positional ones."""
    other: dict[str, Any] | None = None
    """Another batch."""
    vocabulary: int | None = None
    pad_id: int | None = None
    label_keys: tuple[str, ...] = ("labels", "label", "label_ids")
    met_rows: Mapping[str, tuple[int, bool]] = field(default_factory=dict)
    """Other numbers of rows that the training will meet, by where, and whether in training mode."""
    repairs: Sequence[Repair] = ()
    """Those in force."""

    @torch.no_grad()
    def call(self, inputs: Mapping[str, Any], *, training: bool = False) -> Any:
        """The model's answer, in evaluation mode, or in its present modes; modes, buffers and random numbers are put back."""
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        positional = [_to(v, device) for k, v in inputs.items() if k.isdigit()]
        named = {k: _to(v, device) for k, v in inputs.items() if not k.isdigit()}
        repaired = any(r.seam in (Seam.FORWARD, Seam.ACTIVATION) for r in self.repairs)
        watched = Observer(self.model, self.repairs) if repaired else contextlib.nullcontext()
        with left_as_it_was(self.model), watched:
            for module in self.model.modules() if not training else ():
                module.training = False
            return self.model(*positional, **named)

    def scores(self, inputs: Mapping[str, Any]) -> torch.Tensor | None:
        """The model's scores in evaluation mode."""
        found = scores_of(self.call(inputs))
        return found.detach().float() if found is not None else None

    def trace(
        self, inputs: Mapping[str, Any], keep: Callable[[torch.Tensor], torch.Tensor | None]
    ) -> list[Made]:
        """Every call's result in evaluation mode, as far as `keep` wants it."""
        trace = Trace(keep)
        with trace:
            self.call(inputs)
        return trace.made


@contextlib.contextmanager
def left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Put back the model's modes, attributes and buffers, and all random numbers."""
    attributes = AttributeState(model.modules())
    modes = [(m, m.training) for m in model.modules()]
    buffers = [(b, b.detach().clone()) for b in model.buffers()]
    random = RandomState()
    try:
        yield
    finally:
        attributes.put_back()
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        random.put_back()


def _to(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def rows_of(inputs: Mapping[str, Any]) -> int:
    """The number of rows: the size of the first tensor's first axis."""
    return next((len(v) for v in inputs.values() if isinstance(v, torch.Tensor) and v.dim()), 0)


def take_rows(inputs: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """These rows of every tensor that has as many rows as the first."""
    count = rows_of(inputs)
    chosen = torch.as_tensor(list(rows))
    return {
        k: v[chosen.to(v.device)] if isinstance(v, torch.Tensor) and v.dim() and len(v) == count else v
        for k, v in inputs.items()
    }


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception says that a device's memory ended."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "out of memory" in str(error).lower()
    )


def run_probes(probe: Probe) -> dict[str, Any]:
    """Facts of the forward pass that need further calls of the model; a probe that cannot be made is left out."""
    found: dict[str, Any] = {}
    try:
        base = probe.scores(probe.inputs)
    except Exception:  # evaluation mode fails where training mode did not: the evaluation stage will show it
        return found
    found |= _other_rows(probe)
    if base is None or not bool(torch.isfinite(base).all()):
        return found
    rows = rows_of(probe.inputs)
    for measure in (_other_inputs, _ignored_inputs, _leaking_rows, _future_leak, _padding, _padding_let_in):
        with contextlib.suppress(
            Exception
        ):  # a probe's own inputs may not suit the model: then it says nothing
            found |= measure(probe, base, rows)
    return found


def rows_that_work(probe: Probe) -> int | None:
    """Another number of rows with which the model can be called, where the batch's own fails again."""
    rows = rows_of(probe.inputs)
    with contextlib.suppress(Exception):  # whether it raises again is the question
        probe.call(probe.inputs, training=True)
        return None
    for count in USUAL_ROWS:
        if count == rows or not rows:
            continue
        with contextlib.suppress(Exception):  # the number is tried to see whether it raises
            probe.call(take_rows(probe.inputs, [i % rows for i in range(count)]), training=count > 1)
            return count
    return None


def _other_rows(probe: Probe) -> dict[str, Any]:
    """The first number of rows still to come with which the model cannot be called."""
    rows = rows_of(probe.inputs)
    for name, (count, training) in probe.met_rows.items():
        if not rows or count in (0, rows) or count > MOST_ROWS_FACTOR * rows:
            continue
        inputs = take_rows(probe.inputs, [i % rows for i in range(count)])
        trace = Trace(lambda result: None)
        try:
            with trace:
                probe.call(inputs, training=training)
        except Exception as error:
            if is_out_of_memory(error):
                continue
            failure = failure_of(error)
            fixed = [m.where for m in trace.made if m.rows == rows and rows not in m.given_rows and m.where]
            return {"fails_at_rows": count, "other_rows_failure": failure, "other_rows_from": name,
                    "fixed_at": fixed[0] if fixed else failure.where}  # fmt: skip
    return {}


def _other_inputs(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    if probe.other is None or not _inputs_differ(probe):
        return {}
    other = probe.scores(probe.other)
    if other is None or other.shape[1:] != base.shape[1:]:
        return {}
    count = min(len(base), len(other))
    if difference(base[:count], other[:count]) >= SAME_WITHIN:
        return {"same_for_other_inputs": False}
    found: dict[str, Any] = {"same_for_other_inputs": True}
    with _perturbed(probe.model):
        left, right = probe.scores(probe.inputs), probe.scores(probe.other)
        if left is None or right is None:
            return found
        found["same_when_perturbed"] = difference(left[:count], right[:count]) < SAME_WITHIN
        if found["same_when_perturbed"]:
            traces = [
                probe.trace(take_rows(i, range(count)), lambda t: t) for i in (probe.inputs, probe.other)
            ]
            found["constant_from"] = last_difference(*traces)
    return found


def _inputs_differ(probe: Probe) -> bool:
    """Whether the two batches hold something other than their labels that differs."""
    for key, value in probe.inputs.items():
        other = (probe.other or {}).get(key)
        if (
            key in probe.label_keys
            or not isinstance(value, torch.Tensor)
            or not isinstance(other, torch.Tensor)
        ):
            continue
        count = min(len(value), len(other)) if value.dim() and other.dim() else 0
        if count and (value.shape[1:] != other.shape[1:] or not torch.equal(value[:count], other[:count])):
            return True
    return False


@contextlib.contextmanager
def _perturbed(model: nn.Module) -> Iterator[None]:
    """Every weight moved a little, and put back."""
    kept = [(p, p.detach().clone()) for p in model.parameters()]
    source = torch.Generator().manual_seed(1)
    try:
        with torch.no_grad():
            for parameter, value in kept:
                if parameter.is_floating_point():
                    noise = torch.randn(value.shape, generator=source).to(value)
                    parameter.add_(noise * PERTURBED_BY * (value.abs().mean() or 1.0))
        yield
    finally:
        with torch.no_grad():
            for parameter, value in kept:
                parameter.copy_(value)


def _ignored_inputs(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    keys = [k for k, v in probe.inputs.items() if k not in probe.label_keys and isinstance(v, torch.Tensor)
            and v.dim() and len(v) == rows]  # fmt: skip
    if rows < 2 or len(keys) < 2:  # one input alone is constant-output's matter
        return {}
    keys = [k for k in keys if k not in _FROM_TOKENIZER]
    ignored = _without_effect(probe, keys)
    if ignored:  # a branch whose last layer starts at zero is no ignored one
        with _perturbed(probe.model):
            ignored = _without_effect(probe, ignored)
    return {"ignored_inputs": tuple(ignored)}


def _without_effect(probe: Probe, keys: Sequence[str]) -> list[str]:
    """The inputs that differ between rows and whose exchange between rows changes nothing."""
    turned = {k: probe.inputs[k].roll(1, 0) for k in keys}
    varied = [k for k in keys if not torch.equal(turned[k], probe.inputs[k])]
    before = probe.call(probe.inputs) if varied else None
    return [k for k in varied if _same(before, probe.call({**probe.inputs, k: turned[k]}))]


def _same(left: Any, right: Any) -> bool:
    """Whether two answers have the same scores and the same first tensor (the loss, where there is one)."""
    pairs = [(scores_of(left), scores_of(right)), (first_tensor(left), first_tensor(right))]
    return all(
        a is not None and b is not None and a.shape == b.shape and difference(a, b) < SAME_WITHIN for a, b in pairs
    )  # fmt: skip


def _leaking_rows(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    if rows < 2 or len(base) != rows or rows in base.shape[1:2]:  # (N, N) scores compare rows on purpose
        return {}
    alone = take_rows(probe.inputs, [0] * rows)
    changed = probe.scores(alone)
    if changed is None:
        return {}
    leak = (
        difference(base[0], changed[0])
        if base[0].numel() > 1
        else float((base[0] - changed[0]).abs().max() / (base.abs().mean() + base.std(correction=0) + 1e-12))
    )
    found: dict[str, Any] = {"leaking_rows": leak}
    if leak > LEAKS_BEYOND:
        traces = [probe.trace(i, lambda t: _row_0(t, rows)) for i in (probe.inputs, alone)]
        found["leak_from"] = first_difference(*traces)
    return found


def _row_0(result: torch.Tensor, rows: int) -> torch.Tensor | None:
    """The first row, of results with the batch on their first or second axis."""
    if len(result) == rows:
        return result[0]
    return result[:, 0] if result.dim() > 1 and result.shape[1] == rows else None


def token_key(inputs: Mapping[str, Any], label_keys: Sequence[str]) -> str | None:
    """The name of the token ids (N, T) among a model's inputs."""
    tokens = [
        k for k, v in inputs.items()
        if isinstance(v, torch.Tensor) and v.dim() == 2 and not v.is_floating_point() and v.dtype != torch.bool
        and k not in label_keys and "mask" not in k and v.shape[1] >= 4
    ]  # fmt: skip
    return next((k for k in _TOKEN_KEYS if k in tokens), tokens[0] if tokens else None)


def predicts_next_token(
    targets: torch.Tensor | None, inputs: Mapping[str, Any], label_keys: Sequence[str]
) -> bool:
    """Whether the targets that a loss was given are the model's tokens moved by one."""
    key = token_key(inputs, label_keys)
    if key is None or targets is None or targets.is_floating_point():
        return False
    tokens = inputs[key].to(targets.device)
    rows, length = tokens.shape
    if targets.numel() == rows * length:
        aimed = targets.reshape(rows, length)[:, :-1]
    elif targets.numel() == rows * (length - 1):
        aimed = targets.reshape(rows, length - 1)
    else:
        return False
    live = (aimed >= 0) & (aimed < int(tokens.max()) + 1)
    hits = float((aimed == tokens[:, 1:])[live].float().mean()) if bool(live.any()) else 0.0
    unmoved = float((aimed == tokens[:, :-1])[live].float().mean()) if bool(live.any()) else 0.0
    return hits > 0.9 and unmoved < 0.9


def _future_leak(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    key = token_key(probe.inputs, probe.label_keys)
    if key is None:
        return {}
    tokens = probe.inputs[key]
    length = tokens.shape[1]
    if base.dim() != 3 or base.shape[1] != length:
        return {}
    half = length // 2
    counted = _live_positions(probe, tokens)[:, :half].to(base.device)
    if not bool(counted.any()):
        return {}
    altered = tokens.clone()
    altered[:, half:] = (altered[:, half:] + 1) % (probe.vocabulary or int(tokens.max()) + 1)
    changed = probe.scores({**probe.inputs, key: altered})
    if changed is None:
        return {}
    found: dict[str, Any] = {"future_leak": difference(base[:, :half][counted], changed[:, :half][counted])}
    if found["future_leak"] > LEAKS_BEYOND:
        traces = [
            probe.trace({**probe.inputs, key: t}, _before(rows, length, half)) for t in (tokens, altered)
        ]
        found["future_from"] = first_difference(*traces)
    return found


def _live_positions(probe: Probe, tokens: torch.Tensor) -> torch.Tensor:
    """Where the labels, if they are of the tokens' shape, ask for a prediction (a prefix may see itself whole)."""
    labels = next((probe.inputs[k] for k in probe.label_keys if k in probe.inputs), None)
    if not isinstance(labels, torch.Tensor) or labels.shape != tokens.shape:
        return torch.ones_like(tokens, dtype=torch.bool)
    return torch.cat([labels[:, 1:] != -100, torch.zeros_like(labels[:, :1], dtype=torch.bool)], 1)


def _before(rows: int, length: int, half: int) -> Callable[[torch.Tensor], torch.Tensor | None]:
    """The first half of the positions, of (N, T, …) and (N, heads, T, width) results."""

    def keep(result: torch.Tensor) -> torch.Tensor | None:
        if result.dim() < 3 or len(result) != rows or result.shape[-1] == result.shape[-2] == length:
            return None
        if result.shape[1] == length:
            return result[:, :half]
        return result[:, :, :half] if result.dim() == 4 and result.shape[2] == length else None

    return keep


def _padding(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    tokens, mask = probe.inputs.get("input_ids"), probe.inputs.get("attention_mask")
    if not isinstance(tokens, torch.Tensor) or tokens.dim() != 2:
        return {}
    if mask is None:
        return _unmasked_padding(probe, base, tokens)
    if not isinstance(mask, torch.Tensor) or mask.dim() != 2:
        return {}
    if not bool((mask[:, 0] == 1).all()):  # padded on the left: appending would change positions
        return {}
    extra = 4
    pad = torch.full((rows, extra), probe.pad_id or 0, dtype=tokens.dtype, device=tokens.device)
    padded = {
        "input_ids": torch.cat([tokens, pad], 1),
        "attention_mask": torch.cat([mask, torch.zeros_like(pad)], 1),
    }
    if "token_type_ids" in probe.inputs:
        padded["token_type_ids"] = torch.cat([probe.inputs["token_type_ids"], torch.zeros_like(pad)], 1)
    changed = probe.scores(padded)
    if changed is None:
        return {}
    if base.dim() == 3 and base.shape[1] == tokens.shape[1]:
        real = mask.bool().to(base.device)
        return {"padding_changes": difference(base[real], changed[:, : base.shape[1]][real])}
    return {"padding_changes": difference(base, changed)} if changed.shape == base.shape else {}


def _padding_let_in(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    """What other tokens at the padding that the attention mask lets in change."""
    tokens, mask = probe.inputs.get("input_ids"), probe.inputs.get("attention_mask")
    if not isinstance(tokens, torch.Tensor) or not isinstance(mask, torch.Tensor) or probe.pad_id is None:
        return {}
    real = torch.as_tensor(real_positions(tokens.cpu().numpy(), None, pad_id=probe.pad_id)).to(tokens.device)
    let_in = ~real & (mask.to(tokens.device) != 0)
    if not bool(let_in.any()):
        return {}
    changed = probe.scores({**probe.inputs, "input_ids": tokens.masked_fill(let_in, int(tokens.max()))})
    if changed is None or changed.shape != base.shape:
        return {}
    at = real.to(base.device) if base.dim() == 3 and base.shape[1] == tokens.shape[1] else slice(None)
    return {"padding_let_in_changes": difference(base[at], changed[at])}


def _unmasked_padding(probe: Probe, base: torch.Tensor, tokens: torch.Tensor) -> dict[str, Any]:
    """What a mask of the padding would change, where the pipeline gives none."""
    if probe.pad_id is None:
        return {}
    real = torch.as_tensor(real_positions(tokens.cpu().numpy(), None, pad_id=probe.pad_id))
    if bool(real.all()) or not bool(real.any(dim=1).all()):
        return {}
    changed = probe.scores({**probe.inputs, "attention_mask": real.to(tokens.dtype)})
    if changed is None or changed.shape != base.shape:
        return {}
    if base.dim() == 3 and base.shape[1] == tokens.shape[1]:
        at = real.to(base.device)
        return {"unmasked_padding_changes": difference(base[at], changed[at])}
    return {"unmasked_padding_changes": difference(base, changed)}
