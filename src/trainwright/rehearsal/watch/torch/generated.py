"""What a language model generates after its training, for a few of the rows that are shown."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainwright.adapters.torch.called_model import evaluating
from trainwright.core.sample import WORST
from trainwright.rehearsal.readable import TokenDecoder, counted_tokens, mask_of, tokens_of
from trainwright.rehearsal.record import Integers, Sampled
from trainwright.rehearsal.record_parts import Generated
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.sampling import Arrays
from trainwright.rehearsal.watch.torch.state import OuterCall, unwrap_module
from trainwright.seams.failures.watchdog import OutOfTime, stopped_after

# Rows that are continued, tokens that are generated, and those of a prompt that is not marked as one, or is.
MOST_PROMPTS, MOST_NEW, MOST_HALF, MOST_PROMPT = 3, 20, 32, 512
# All of it may take so many seconds.
SECONDS = 6.0
# Weights of a model that is kept for it although the script lets go of it, in numbers: 400 MB.
MOST_WEIGHTS = 100_000_000
# Where nothing keeps a draw from another token than the likeliest, it is made nearly sure instead.
_COLD = 0.01


@dataclass(frozen=True)
class Prompt:
    """The beginning of a row, and how it goes on."""

    sampled: Sampled
    tokens: Integers
    expected: Integers


class Generating:
    """Keeps the last model that generates, and asks it once the script is over."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._able: dict[type, bool] = {}
        self._model: Any = None
        self._number = 0

    def note(self, call: OuterCall) -> None:
        """A model was called."""
        number, module = call.model.number, call.model.ref()
        if self._recorder.sampler is None or module is None or number == self._number:
            return
        module = unwrap_module(module)
        kind = type(module)
        if kind not in self._able:
            self._able[kind] = callable(getattr(kind, "generate", None))
        if self._able[kind] and sum(p.numel() for p in module.parameters()) <= MOST_WEIGHTS:
            self._model, self._number = module, number

    def finish(self) -> None:
        """Generate. Random numbers and modes are as before."""
        recorder, model = self._recorder, self._model
        if model is None or recorder.sampler is None or not recorder.record.updates:
            return
        chosen = [one for one in recorder.sampler.chosen() if one[0].model == self._number]
        decoder = recorder.names.decoder(
            max((int(t.max(initial=0)) for _, inputs in chosen for _, t in tokens_of(inputs)), default=0)
        )
        if decoder is None:
            return
        with contextlib.suppress(OutOfTime), evaluating(model), stopped_after(SECONDS):
            for prompt in _prompts(chosen, _is_two_part(model), decoder):
                if (made := _continued(model, prompt, decoder, recorder.record.updates)) is not None:
                    recorder.record.generated.append(made)


def _is_two_part(model: Any) -> bool:
    """Whether an encoder reads the row and a decoder writes the labels."""
    return bool(getattr(model.__dict__.get("config"), "is_encoder_decoder", False))


def _prompts(chosen: list[tuple[Sampled, Arrays]], two_parts: bool, decoder: TokenDecoder) -> Iterator[Prompt]:
    """The prompts of a few rows: held-out ones first, those that are as usual before the worst."""
    held_out = any(not sampled.trains for sampled, _ in chosen)
    seen: set[bytes] = set()
    for sampled, inputs in sorted(chosen, key=lambda one: WORST in one[0].why):
        tokens = tokens_of(inputs)
        if not tokens or len(sampled.labels) < 2 or sampled.trains == held_out:
            continue
        prompt = _prompt(sampled, tokens[0][1], inputs, two_parts, decoder)
        if prompt is not None and prompt.tokens.tobytes() not in seen:
            seen.add(prompt.tokens.tobytes())
            yield prompt
        if len(seen) == MOST_PROMPTS:
            return


def _prompt(
    sampled: Sampled, ids: NDArray[Any], inputs: Arrays, two_parts: bool, decoder: TokenDecoder
) -> Prompt | None:
    labels = sampled.labels.astype(np.int64)
    real = real_tokens(ids, inputs, decoder.padding)
    if two_parts:
        wanted = labels[(labels != sampled.ignored) & (labels >= 0)]
        return Prompt(sampled, ids[real], wanted) if 0 < real.sum() <= MOST_PROMPT else None
    counts = counted_tokens(sampled, ids)
    if counts is None:
        return None
    read, counted = ids[real], counts[real]
    first = int(np.argmax(counted)) if counted.any() else 0
    # The first token of a row is never counted: there is nothing to predict it from.
    at = first if first > 1 else min(len(read) // 2, MOST_HALF)
    return Prompt(sampled, read[:at], read[at:]) if 0 < at <= MOST_PROMPT else None


def real_tokens(ids: NDArray[Any], inputs: Arrays, padding: int | None) -> NDArray[np.bool_]:
    """Which of a row's tokens are no padding: by its mask, or else by the token at its end."""
    mask = mask_of(ids, [(name, one.reshape(-1)) for name, one in inputs], padding)
    if mask is not None:
        return mask
    end = len(ids) - next((i for i, token in enumerate(ids[::-1].tolist()) if token != padding), len(ids))
    return np.arange(len(ids)) < end


def _continued(model: Any, prompt: Prompt, decoder: TokenDecoder, update: int) -> Generated | None:
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    given = torch.as_tensor(prompt.tokens.astype(np.int64), device=device)[None]
    config = model.__dict__.get("config")
    places = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    two_parts = _is_two_part(model)
    new = MOST_NEW if two_parts or not isinstance(places, int) else min(MOST_NEW, places - len(prompt.tokens))
    arguments = _arguments(model, given, new)
    if arguments is None or new < 1:
        return None
    try:
        made = model.generate(*arguments[0], **arguments[1])
    except Exception:  # the model's own: it does not generate from such rows
        return None
    made = made[0] if isinstance(made, tuple) else made
    if not isinstance(made, torch.Tensor) or not made.numel():
        return None
    ids = made.reshape(-1).cpu().numpy()
    begins = (
        not two_parts and len(ids) >= len(prompt.tokens) and bool((ids[: len(prompt.tokens)] == prompt.tokens).all())
    )
    ids = ids[len(prompt.tokens) :] if begins else ids
    sampled = prompt.sampled
    return Generated(
        trains=sampled.trains,
        data=sampled.data,
        model=sampled.model,
        number=sampled.number,
        update=update,
        prompt=_text(prompt.tokens, decoder),
        text=_text(ids, decoder),
        expected=_text(prompt.expected[: 2 * MOST_NEW], decoder),
    )


def _arguments(model: Any, given: Any, new: int) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """How its `generate` is called for the likeliest tokens; None: not in a way that is known."""
    parameters = list(inspect.signature(model.generate).parameters.values())
    names = {one.name for one in parameters}
    if "max_new_tokens" in names:  # the script's own
        needed = {
            one.name for one in parameters[1:] if one.default is one.empty and one.kind == one.POSITIONAL_OR_KEYWORD
        }
        sure = {"top_k": 1} if "top_k" in names else {"temperature": _COLD} if "temperature" in names else {}
        return ((given,), {"max_new_tokens": new, **sure}) if needed <= {"max_new_tokens"} else None
    if hasattr(type(model), "prepare_inputs_for_generation") and model.__dict__.get("config") is not None:
        mask = torch.ones_like(given)
        return (), {
            "input_ids": given,
            "attention_mask": mask,
            "max_new_tokens": new,
            "do_sample": False,
            "num_beams": 1,
        }
    return None


def _text(ids: Any, decoder: TokenDecoder) -> str:
    kept = [int(one) for one in ids if 0 <= int(one) < decoder.size and int(one) != decoder.padding]
    return decoder.decode(kept)
