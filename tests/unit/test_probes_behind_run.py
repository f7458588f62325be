"""Models that were trained are asked once more behind the run: what of the other rows and of the inputs reaches their answers."""

import dataclasses
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from records import MODEL, classifier
from trainwright.look.asking import judge_facts
from trainwright.look.results import LookResult
from trainwright.rehearsal.record import Record
from trainwright.rehearsal.watch.torch.probes import Probes
from trainwright.rehearsal.watch.torch.samples import named_tensors
from trainwright.rehearsal.watch.torch.state import HeldTensor, Model, OuterCall
from trainwright.stages import ForwardFacts, SetupFacts


class Asked(nn.Module):
    """Answers with what a function makes of its inputs."""

    def __init__(self, answer):
        super().__init__()
        self.layer, self.answer = nn.Linear(4, 3), answer

    def forward(self, *given, **named):
        return self.layer(self.answer(*given, **named))


def rows(seed=0, width=4):
    return torch.randn(8, width, generator=torch.Generator().manual_seed(seed))


def probe(answer, *args, record=None, is_trained=True, rows=8, **kwargs) -> Record:
    """The record of a run whose model was called like this."""
    record, module = record or classifier(), Asked(answer)
    model = Model(weakref.ref(module), MODEL if is_trained else 99, True, [], is_trained=is_trained)
    inputs = [(name, HeldTensor.of(tensor)) for name, tensor in named_tensors(args, kwargs)]
    probes = Probes(SimpleNamespace(recorder=SimpleNamespace(record=record)))
    probes.note(OuterCall(model, 1, False, False, rows, inputs), args, kwargs)
    probes.finish()
    return record


def found_in(record: Record) -> list[tuple[str, str]]:
    found = []
    for look in record.looks:
        assert not judge_facts(look.facts, look.answer, found)
    return [(one.name, str(one.severity)) for one in found]


def test_a_sound_model_gives_no_look() -> None:
    assert not probe(lambda x: x, rows()).looks


@pytest.mark.parametrize("is_trained", [True, False])
def test_rows_that_depend_on_others_are_told_of_trained_models(is_trained: bool) -> None:
    record = probe(lambda x: x - x.mean(0), rows(), is_trained=is_trained)
    assert found_in(record) == ([("crossed-samples", "warning")] if is_trained else [])


def test_what_the_first_look_has_seen_is_not_told_again() -> None:
    record = classifier()
    seen = ForwardFacts(leaking_rows=0.5, ignored_inputs=("inputs[1]",))
    record.looks = [LookResult(1, {ForwardFacts: seen})]
    probe(lambda x, side: x - x.mean(0) + 0 * side, rows(), rows(1), record=record)
    first, last = (look.facts[ForwardFacts] for look in record.looks)
    assert first.ignored_inputs == () and (last.ignored_inputs, last.leaking_rows) == (("inputs[1]",), None)
    probe(lambda x, side: x - x.mean(0) + side, rows(), rows(1), record=(record := classifier()))
    assert found_in(record) == [("crossed-samples", "warning")]


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_a_recurrence_over_rows_is_told_where_rows_come_again_behind_others(is_shuffled: bool) -> None:
    """Of a sequence, whose first axis is time, each step comes behind the same one."""
    record = classifier()
    if not is_shuffled:
        for number, one in enumerate(record.answers):
            if one.trains:
                record.answers[number] = dataclasses.replace(one, keys=np.arange(len(one.labels)))
    probe(lambda x: x.cumsum(0), rows(), record=record)
    assert found_in(record) == ([("crossed-samples", "warning")] if is_shuffled else [])


@pytest.mark.parametrize(
    ("args", "kwargs", "answer", "name"),
    [
        ((rows(), rows(1)), {}, lambda x, side: x + 0 * side, "inputs[1]"),
        ((rows(),), {"side": rows(1)}, lambda x, side: x + 0 * side, "side"),
        (({"x": rows(), "side": [rows(1)]},), {}, lambda batch: batch["x"] + 0 * batch["side"][0], "inputs[0].side[0]"),
        ((rows(), rows(1)), {}, lambda x, side: x + side, ""),
        ((rows(), torch.ones(8, 4)), {}, lambda x, side: x, ""),
        ((torch.arange(32).reshape(8, 4), torch.arange(8) % 4), {}, lambda x, lens: x.float() + x, ""),
        ((rows(), rows(1)), {}, lambda x, side: torch.ones(8, 4), ""),
        ((rows(),), {"labels": rows(1)}, lambda x, labels: x, ""),
    ],
)
def test_an_input_that_reaches_no_answer_is_told(args, kwargs, answer, name) -> None:
    """Wherever it stands, if the rows differ in it, another input reaches them, and it is no label."""
    record = probe(answer, *args, **kwargs)
    assert [one.facts[ForwardFacts].ignored_inputs for one in record.looks] == ([(name,)] if name else [])
    assert found_in(record) == ([("ignored-input", "warning")] if name else [])


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_dropout_that_stays_active_is_noted(share: float) -> None:
    record = probe(lambda x: nn.functional.dropout(x, share), rows())
    assert [(one.model, one.operation) for one in record.lasting_noise] == ([(MODEL, "dropout")] if share else [])
    assert not record.looks


def test_dropout_that_the_script_switches_by_itself_is_no_lasting_one() -> None:
    """Its flag may be on at the end of the run, and have been off in each evaluation."""
    is_on = True
    assert not probe(lambda x: nn.functional.dropout(x, 0.5, training=is_on), rows()).lasting_noise
    assert not probe(lambda x: nn.functional.dropout(x, 0.5, is_on), rows()).lasting_noise
    assert probe(lambda x: nn.functional.dropout(x, 0.5, training=True), rows()).lasting_noise


def test_a_model_that_takes_nothing_else_is_left_alone() -> None:
    def raises(x):
        raise ValueError("asked twice")

    record = probe(raises, rows())
    assert not record.looks and not record.lasting_noise


def test_nothing_but_the_probes_is_judged() -> None:
    found: list = []
    assert not judge_facts({SetupFacts: SetupFacts(), ForwardFacts: ForwardFacts(has_last_weights=True)}, None, found)
    assert not found


def test_dropout_is_noted_where_the_rows_belong_together() -> None:
    pairs = torch.ones(128, 128)
    record = probe(lambda x: nn.functional.dropout(pairs @ x, 0.5), torch.randn(128, 4), rows=128)
    assert [one.operation for one in record.lasting_noise] == ["dropout"] and not record.looks
