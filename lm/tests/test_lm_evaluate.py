"""The loss on held-out documents, and a whole evaluation."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from lm_evaluating import HELD_OUT, SCRIPT, TRAINING, prepared, tiny_model, tiny_run, tokenizer_of, tokens_of
from lm_material import small_recipe
from trainwright.errors import ReadError, UsageError, WriteError
from trainwright_lm.commands.run import as_table
from trainwright_lm.commands.run import evaluate as command
from trainwright_lm.corpus.options import PrepareOptions
from trainwright_lm.corpus.prepare import prepare
from trainwright_lm.evaluation.baselines import line_completer
from trainwright_lm.evaluation.evaluate import as_json, count_bytes, evaluate, measure_loss, open_data_of, save
from trainwright_lm.runs.folder import open_run, read_manifest
from trainwright_lm.tokens.prepared import documents, open_data
from trainwright_lm.training.train import train

TOKENIZER = tokenizer_of(TRAINING)


def slow_nats(model, tokens: list[int], end_id: int) -> float:
    """Token by token, each from the window's tokens before it alone."""
    context, nats = model.config.context, 0.0
    stream = [end_id, *tokens]
    for place, token in enumerate(tokens):
        window = stream[place // context * context : place + 1]
        with torch.no_grad():
            logits_V = model(torch.tensor([window]))[0, -1].double()
        nats -= float(logits_V.log_softmax(-1)[token])
    return nats


@pytest.mark.parametrize("texts", [HELD_OUT, ["x"], ["", "a = 1\n"]], ids=["two scripts", "a token", "an empty one"])
def test_the_loss_is_that_of_every_token_predicted_once(tmp_path, texts) -> None:
    file = tokens_of(tmp_path / "validation.bin", texts, TOKENIZER)
    model = tiny_model(TOKENIZER)
    found = measure_loss(model, file, TOKENIZER)
    nats = slow_nats(model, file.tokens.tolist(), TOKENIZER.end_id)
    assert found.tokens == len(file.tokens) == sum(len(TOKENIZER.encode(text)) + 1 for text in texts)
    assert found.nats_per_token == pytest.approx(nats / found.tokens, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(nats / found.tokens), rel=1e-4)


def test_the_loss_in_bf16_differs_by_rounding_alone(tmp_path) -> None:
    file, model = tokens_of(tmp_path / "validation.bin", HELD_OUT, TOKENIZER), tiny_model(TOKENIZER)
    found = measure_loss(model, file, TOKENIZER, precision="bf16")
    exact = measure_loss(model, file, TOKENIZER)
    assert (found.precision, exact.precision) == ("bf16", "fp32")
    assert found.nats_per_token == pytest.approx(exact.nats_per_token, rel=1e-3)


def test_bits_per_byte_divides_by_the_bytes_of_the_text_alone(tmp_path) -> None:
    """A model that finds all tokens equally likely spends log2(vocabulary) bits on each, ends among them."""
    texts = ["größe = 1\n", "价格 = 2\n"]
    file = tokens_of(tmp_path / "validation.bin", texts, TOKENIZER)
    model = tiny_model(TOKENIZER)
    with torch.no_grad():
        model.output_weight.zero_()
    found = measure_loss(model, file, TOKENIZER)
    text_bytes = sum(len(text.encode()) for text in texts)
    assert found.bytes == count_bytes(file.tokens, TOKENIZER) == text_bytes == 23
    assert found.nats_per_token == pytest.approx(math.log(TOKENIZER.vocabulary_size))
    bits = found.tokens * math.log2(TOKENIZER.vocabulary_size)
    assert found.bits_per_byte == pytest.approx(bits / text_bytes)


def test_no_tokens_and_a_loss_that_is_no_number_are_refused(tmp_path) -> None:
    model = tiny_model(TOKENIZER)
    with pytest.raises(ReadError, match="no tokens to predict"):
        measure_loss(model, tokens_of(tmp_path / "empty.bin", [], TOKENIZER), TOKENIZER)
    with torch.no_grad():
        model.output_weight[3] = float("nan")
    with pytest.raises(ReadError, match="training has diverged"):
        measure_loss(model, tokens_of(tmp_path / "validation.bin", ["a"], TOKENIZER), TOKENIZER)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    data = prepared(folder / "data")
    run = tiny_run(folder / "run", data)
    return data, run, evaluate(run, data, samples=6)


def test_an_evaluation_is_the_same_every_time(evaluated) -> None:
    data, run, first = evaluated
    again = evaluate(open_run(run.folder), data, samples=6)
    assert as_json(again) == as_json(first)
    assert as_json(evaluate(run, data, samples=6, seed=1)) != as_json(first)


def test_an_evaluation_compares_the_model_with_the_baselines_on_both_kinds_of_cuts(evaluated) -> None:
    tables = json.loads(as_json(evaluated[2]))
    assert set(tables["quality"]) == {"random", "call"}
    for quality in tables["quality"].values():
        assert quality["cuts"] == 6 and quality["documents"] == 2
        assert set(quality["scores"]) == {"model", "ngram", "network", "ngram_alone", "frequent"}
        assert set(quality["ahead"]) == {"ngram", "network", "ngram_alone", "frequent"}
        # The training documents hold nearly the same lines; the model has learned nothing.
        assert quality["scores"]["ngram"]["edit_similarity"]["mean"] > 0.5
        assert quality["scores"]["model"]["edit_similarity"]["mean"] < 0.5
    assert tables["loss"]["perplexity"] == pytest.approx(math.exp(tables["loss"]["nats_per_token"]))
    assert tables["step"] == 0 and tables["data"] == "f00d" and tables["seed"] == 0
    assert tables["baselines"]["ngram_order"] == 5


def test_the_model_completes_cuts_as_the_command_completes_prompts(evaluated) -> None:
    from trainwright_lm.completion.complete import Completer
    from trainwright_lm.evaluation.cuts import Cut

    cut = Cut(document=0, text=HELD_OUT[0], position=120)
    assert line_completer(evaluated[1].model, evaluated[1].tokenizer)(cut) == Completer(
        evaluated[1].model, evaluated[1].tokenizer
    ).complete(HELD_OUT[0][:120])


def test_without_samples_only_the_loss_is_measured(evaluated) -> None:
    data, run, first = evaluated
    loss_alone = evaluate(run, data, samples=0)
    assert loss_alone.loss == first.loss and not loss_alone.quality


@pytest.mark.parametrize("numbers", [{"samples": -1}, {"seed": -1}])
def test_numbers_below_zero_are_refused(evaluated, numbers) -> None:
    with pytest.raises(UsageError, match="must not be negative"):
        evaluate(evaluated[1], evaluated[0], **numbers)


def test_held_out_documents_without_calls_leave_that_kind_out(tmp_path) -> None:
    data = prepared(tmp_path / "data", held_out=["x = 1\ny = x\n"])
    found = evaluate(tiny_run(tmp_path / "run", data), data, samples=5)
    assert list(found.quality) == ["random"] and found.quality["random"].cuts == 2
    assert json.loads(as_json(found))["quality"]["random"]["scores"]["model"]["exact_match"]["low"] == 0.0


def test_a_metric_that_says_nothing_is_null_in_json_and_none_in_the_table(tmp_path) -> None:
    data = prepared(tmp_path / "data", held_out=["1\n2 + 3\n"])
    found = evaluate(tiny_run(tmp_path / "run", data), data, samples=5)
    scores = json.loads(as_json(found))["quality"]["random"]["scores"]["frequent"]
    assert scores["identifier_match"]["mean"] is None
    console = Console(width=100)
    with console.capture() as shown:
        console.print(as_table(found))
    assert re.search(r"most frequent rest .* none *$", shown.get(), re.MULTILINE)


def test_other_data_than_the_run_s_is_refused(evaluated, tmp_path) -> None:
    data, run, _ = evaluated
    other = replace(data, manifest={**data.manifest, "fingerprint": "beef"})
    with pytest.raises(UsageError, match=r"trained on \(f00d\).*other data \(beef\).*--data"):
        evaluate(run, other)
    foreign = prepared(tmp_path / "foreign", training=[SCRIPT.replace("plt", "pyplot")] * 3)
    with pytest.raises(UsageError, match="the run's tokenizer"):
        evaluate(run, foreign)


def test_data_that_was_moved_is_asked_for(evaluated, tmp_path) -> None:
    run = tiny_run(tmp_path / "run", replace(evaluated[0], manifest={"folder": str(tmp_path / "gone")}))
    with pytest.raises(ReadError, match=r"gone.*--data"):
        open_data_of(run)
    silent = tiny_run(tmp_path / "silent", replace(evaluated[0], manifest={}))
    with pytest.raises(UsageError, match="--data"):
        open_data_of(silent)
    with pytest.raises(ReadError, match="absent"):
        open_data_of(run, tmp_path / "absent")


def test_an_evaluation_that_cannot_be_saved_is_told_of(evaluated, tmp_path) -> None:
    with pytest.raises(WriteError, match=r"evaluation\.json"):
        save(evaluated[2], tmp_path / "absent" / "evaluation.json")


@pytest.fixture
def on_disk(evaluated, monkeypatch):
    """The run, whose data is found where it says; opening that is another test's matter."""
    monkeypatch.setattr("trainwright_lm.evaluation.evaluate.open_data", lambda folder: evaluated[0])
    return evaluated[1].folder


def test_the_command_saves_prints_and_writes_the_same_results(on_disk, tmp_path, capsys) -> None:
    command(on_disk, samples=3, json=str(tmp_path / "results.json"))
    shown = capsys.readouterr()
    saved = (on_disk / "evaluation.json").read_text(encoding="utf-8")
    assert (tmp_path / "results.json").read_text(encoding="utf-8") == saved
    assert "nats per token" in shown.out and "most frequent rest" in shown.out and "5-gram model" in shown.out
    command(on_disk, samples=3, json="-")
    shown = capsys.readouterr()
    assert shown.out == saved and "nats per token" in shown.err


def test_the_command_refuses_a_file_it_could_not_write_before_it_begins(on_disk, tmp_path) -> None:
    with pytest.raises(UsageError, match="existing folder"):
        command(on_disk, json=str(tmp_path / "absent" / "results.json"))
    with pytest.raises(UsageError, match="is a folder"):
        command(on_disk, json=str(tmp_path))


def test_the_command_takes_a_checkpoint_by_its_number(on_disk) -> None:
    command(on_disk, samples=0, checkpoint="0")
    assert json.loads((on_disk / "evaluation.json").read_text(encoding="utf-8"))["quality"] == {}
    with pytest.raises(ReadError, match="no checkpoint 7"):
        command(on_disk, checkpoint="7")


def test_data_that_prepare_made_and_a_run_that_train_made_are_evaluated(tmp_path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for file in sorted(Path(json.__file__).parent.glob("*.py")):
        (source / file.name).write_text(file.read_text("utf-8"), encoding="utf-8")
    options = PrepareOptions(sources=(str(source),), vocabulary_size=300, validation=0.3)
    prepare(tmp_path / "data", options)
    train(open_data(tmp_path / "data"), tmp_path / "run", small_recipe("run.updates=3"))
    command(tmp_path / "run", data=tmp_path / "data", samples=3, checkpoint="last")
    found = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    held_out = list(documents(tmp_path / "data", "validation"))
    assert found["loss"]["bytes"] == sum(one.bytes for one in held_out)
    assert found["data"] == read_manifest(tmp_path / "run")["fingerprint"]
    texts = {line.strip() for one in held_out for line in one.text.split("\n")}
    assert all((one["typed"] + one["rest"]).strip() in texts for one in found["quality"]["random"]["examples"])
