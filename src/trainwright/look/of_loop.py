"""A training of the script's own loop, or of a package's: the interface of all kinds, and what is so unless a kind knows better."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import nn

from trainwright.adapters.process_fingerprint import loop_rank
from trainwright.adapters.torch.failed_call import CallOutside
from trainwright.adapters.torch.loaders import keywords_of, loader_places
from trainwright.adapters.torch.optimizer import is_rate_written, optimizer_places
from trainwright.adapters.torch.setup import setup_facts
from trainwright.adapters.torch.words import LOOP, WITH_ACCELERATE
from trainwright.core import FactsByKind, Failure, Place
from trainwright.look.repairs_of_torch import Repairing
from trainwright.look.replay import Replay
from trainwright.look.row_steps import RowSteps
from trainwright.look.state import Look, Sets, Trainings
from trainwright.look.trainer_batches import TrainerSteps
from trainwright.seams.failures.blame import frames_of
from trainwright.seams.listening.seen import seen
from trainwright.seams.loops.found_loops import has_attributes
from trainwright.seams.processes import Position
from trainwright.seams.source.places import is_ours
from trainwright.seams.torch.marks import Mark, comparison_of
from trainwright.seams.torch.versions import is_autocast_on
from trainwright.stages import Comparison, EvaluationFacts, RankFacts, SetupFacts

# The roles of the lines where what reaches a step's gates is called.
_GATES = {"step": "optimizer_step", "zero_grad": "zero_grad", "schedule": "schedule_step", "backward": "backward"}
_METRICS = ("sklearn.metrics", "torchmetrics.", "torcheval.", "evaluate.")


class LoopTraining:
    """A training as the run's observers see it."""

    is_asked_again = False
    """Whether it is asked once more behind the run for what it shows then: its evaluation needs no watching."""
    had_optimizer = had_schedule = True
    """Whether the script made them, and not the framework."""
    model: Any = None
    """The model that it is asked again with."""
    largest_norm: float | None = None
    """To which the framework clips gradients."""

    def mend(self, repairing: Repairing) -> None:
        """Have repairs in force in the parts that the framework holds, before it trains."""

    def find_tokenizer(self, scope: Mapping[str, Any]) -> Any:
        """The training's tokenizer, or one in the script's scope."""
        return next((value for value in scope.values() if is_tokenizer(value)), None)

    def list_owners(self, scope: Mapping[str, Any]) -> dict[str, Any]:
        """The objects that may still hold a part of the step's graph, by their names."""
        return {
            name: value
            for name, value in scope.items()
            if not name.startswith("_") and has_attributes(value, "__dict__") and not isinstance(value, nn.Module)
        }

    # The first update

    def measure_setup(self, look: Look, optimizers: list[Any], schedules: list[Any]) -> SetupFacts:
        """The parts, places and devices of a training whose first update was made."""
        accelerator = _accelerator_of(look.scope.values())
        precision = getattr(accelerator, "mixed_precision", None)
        return setup_facts(
            look.model,
            optimizers,
            seen(),
            called=look.roots,
            framework="torch" if accelerator is None else "accelerate",
            words=LOOP if accelerator is None else WITH_ACCELERATE,
            call="training loop",
            places=_find_places(look, optimizers, schedules),
            precision=precision if precision in ("bf16", "fp16") else "bf16" if is_autocast_on("cpu") else "fp32",
            batch_size=look.loader.batch_size or 0 if look.loader is not None else 0,
            accumulation=look.draws,
        )

    def is_rate_written(self, optimizers: Sequence[Any]) -> bool:
        """Whether the script gave the learning rates."""
        return all(is_rate_written(one, seen()) for one in optimizers)

    def find_row_changes(self) -> dict[str, Any]:
        """Fields of the batch's facts: what the framework has changed between the set's rows and the model."""
        return {}

    # Its further course

    def continue_rates(self, rates: list[float], planned: int) -> list[float]:
        """The learning rates of the updates so far, and those of the planned ones that the framework knows."""
        return rates

    def count_warmup(self, planned: int) -> int | None:
        """How many of the planned updates warm up; None: unknown."""
        return None

    # Its sets

    def form_sets(self, scope: Mapping[str, Any] | None = None) -> Sets | None:
        """The sets that the framework was given; None: they are known by the batches that loaders give.

        Args:
            scope: the script's names; None: those of the line that calls for the training.
        """
        return None

    def place_labels(self, column: str) -> Place | None:
        """The script's last line before the training that writes a column of this name."""
        return None

    def find_steps(
        self, replay: Replay | None, placed: Mapping[str, str], collate: Callable[[Any], Any]
    ) -> RowSteps | TrainerSteps:
        """Steps on chosen rows."""
        return RowSteps(replay, placed, collate)

    # Behind the run

    def add_trained(self, look: Look) -> None:
        """Measure what has trained, where it can be asked again."""

    def measure_end(self, error: Exception, failure: Failure, looking: Trainings) -> FactsByKind | None:
        """The facts of an exception that came of something else than a step; None: it did not."""
        refused = _find_refused(error, failure)
        if refused is None:
            return None
        return {EvaluationFacts: EvaluationFacts(in_loop=True, metrics_failure=failure, comparisons=(refused,))}

    def measure_early_setup(self, loader: Any) -> SetupFacts:
        """What is known of a training that has not made an update: the lines of the loader that it has drawn from, if any."""
        places = loader_places(loader, seen()) if loader is not None else {}
        return SetupFacts(words=LOOP, ranks=seen().ranks, places=places)

    def measure_rank(self, frame: FrameType, position: Position) -> RankFacts:
        """What one of several processes begins to train with.

        Args:
            frame: the script's, that makes the first update or calls for the training.
        """
        return loop_rank(frame, seen(), position)

    def complete_called(self, facts: FactsByKind, setup: SetupFacts, call: CallOutside | None) -> FactsByKind:
        """The facts of a call that raised and was made again, with what is known of its training; None: there is none."""
        return facts | {SetupFacts: call.known(setup) if call is not None else setup}


def is_tokenizer(value: Any) -> bool:
    """Whether an object of the script makes token ids of texts."""
    return callable(value) and has_attributes(value, "pad_token_id", "decode")


def _accelerator_of(values: Iterable[Any]) -> Any:
    """The first Accelerator among some objects, or None."""
    kind = getattr(sys.modules.get("accelerate.accelerator"), "Accelerator", None)
    return next((v for v in values if kind is not None and isinstance(v, kind)), None)


def _find_places(look: Look, optimizers: list[Any], schedules: list[Any]) -> dict[str, Place]:
    """The user's lines, by role."""
    found, places = seen(), dict[str, Place]()
    if look.where is not None:
        places |= {"train_call": look.where, "trainer": look.where}
    passed = look.passed.places
    places |= {role: passed[kind] for kind, role in _GATES.items() if kind in passed}
    if look.schedule_first_at is not None:
        places["schedule_step"] = look.schedule_first_at
    if "zero_grad" in places:
        places["clear_call"] = places["zero_grad"]
    for module in (*look.roots, *look.model.children()):
        if module in found.modules:
            places.setdefault("model", found.modules[module])
    for optimizer in optimizers:
        if optimizer in found.optimizers:
            rates = look.passed.rates.get(id(optimizer), ())
            places = {**optimizer_places(optimizer, found.optimizers[optimizer], rates), **places}
    for schedule in schedules:
        if schedule in found.schedules:
            places.setdefault("scheduler", found.schedules[schedule].place)
            places |= {r: p for r, p in keywords_of(found.schedules[schedule]).items() if r not in places}
    stilled = [found.stilled[m] for m in (*look.roots, *look.model.modules()) if m in found.stilled]
    if stilled:
        places["mode_change"] = stilled[0]
    if look.loader is not None:
        places |= {r: p for r, p in loader_places(look.loader, found).items() if r not in places}
    return places


def _find_refused(error: Exception, failure: Failure) -> Comparison | None:
    """What a comparison with labels, or a library's metric function, was given that raised."""
    for frame in frames_of(error):
        given, name = frame.f_locals, frame.f_code.co_name
        pair: list[Any] = []
        word = str(given.get("word", "=="))
        if str(frame.f_globals.get("__name__", "")).startswith(_METRICS):
            pair, word = [given.get("y_pred", given.get("y_score")), given.get("y_true")], name
            pair = [torch.as_tensor(np.asarray(one)) for one in pair if one is not None]
        elif name == "_compare" and is_ours(frame.f_code.co_filename) and given["meets"]:
            pair = [given["predictions"], given["labels"]]
        elif name == "passed_on_equal" and is_ours(frame.f_code.co_filename):
            # Whose answers these are is known only of an evaluation that is looked at; elsewhere labels are no fractions.
            pair = sorted([given["self"], given["other"]], key=lambda one: not one.is_floating_point())
            pair = pair if pair[0].is_floating_point() and not pair[1].is_floating_point() else []
        if len(pair) == 2 and pair[0].dim() and pair[1].dim():
            scores = pair[0] if pair[0].is_floating_point() else None
            made: Comparison = comparison_of(word, *pair, None, Mark(frozenset()), scores, failure.where, failure)
            return made
    return None
