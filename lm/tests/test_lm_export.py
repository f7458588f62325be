"""Exports open in transformers with the same logits, ids and ends; imports are exact, or refused with the reason."""

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file

from lm_runs import SOURCE, config, model, run, tokenizer
from trainwright.errors import ReadError, UsageError, WriteError
from trainwright_lm.config import recipe_from
from trainwright_lm.exchange import layout
from trainwright_lm.exchange.export import export_run, import_folder, licence, written_card
from trainwright_lm.network.decoder import Decoder
from trainwright_lm.runs.folder import open_run

ARCHITECTURES = ("modern", "gpt2")
CLASSES = {"modern": "Qwen3ForCausalLM", "gpt2": "GPT2LMHeadModel"}
MANIFEST = {
    "fingerprint": "1234",
    "options": {
        "sources": ["installed", "/home/someone/secret", "hub:codeparrot/codeparrot-clean"],
        "filters": {"keywords": ["pandas", "sklearn"]},
    },
    "funnel": {
        "seen": {"files": 1200, "bytes": 3_000_000},
        "dropped": {"no-keyword": {"files": 900, "bytes": 2_000_000, "samples": ["/home/someone/secret/a.py"]}},
        "kept": {"files": 300, "bytes": 1_000_000},
    },
    "splits": {
        "train": {"documents": 280, "bytes": 900_000, "groups": 3, "tokens": 250_000},
        "validation": {"documents": 20, "bytes": 100_000, "groups": 1, "tokens": 27_000},
    },
    "split_by": "group",
    "licences": {"MIT": {"documents": 200, "bytes": 750_000}, "unknown": {"documents": 100, "bytes": 250_000}},
}
EVALUATION = {
    "step": 7,
    "loss": {"nats_per_token": 1.25, "bits_per_byte": 0.6, "tokens": 27_000, "bytes": 100_000, "perplexity": 3.49},
    "quality": {
        "random": {
            "cuts": 50,
            "documents": 20,
            "scores": {
                "model": {"exact_match": {"mean": 0.25, "low": 0.2, "high": 0.3}},
                "ngram": {"exact_match": {"mean": 0.1, "low": None, "high": None}},
            },
        }
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {architecture: run(folder / architecture, architecture, MANIFEST) for architecture in ARCHITECTURES}


@pytest.fixture(scope="module")
def exports(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exports")
    for architecture, made in runs.items():
        export_run(made, folder / architecture)
    return {architecture: folder / architecture for architecture in ARCHITECTURES}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_transformers_computes_the_same_logits(architecture: str, exports: dict[str, Path]) -> None:
    from transformers import AutoModelForCausalLM

    theirs, report = AutoModelForCausalLM.from_pretrained(exports[architecture], output_loading_info=True)
    assert not any(report.values()), report
    assert type(theirs).__name__ == CLASSES[architecture]
    assert theirs.dtype == torch.float32
    ours = model(architecture)
    ids = torch.randint(0, ours.config.vocabulary_size, (3, ours.config.context))
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, ours(ids), atol=1e-5, rtol=1e-5)


def test_the_context_is_the_number_of_positions(exports: dict[str, Path]) -> None:
    """Defect 11 of the course's recipe: n_ctx alone leaves 1,024 positions."""
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(exports["gpt2"])
    assert theirs.config.n_positions == theirs.config.n_ctx == config("gpt2").context
    assert theirs.transformer.wpe.weight.shape[0] == config("gpt2").context


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("text", [SOURCE, "x = '<|endoftext|>'", "Größe 漢字 🙂\r\n\t 12345", "", "  a\n\n\n    b"])
def test_transformers_gives_the_same_ids(architecture: str, text: str, exports: dict[str, Path]) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(exports[architecture])
    ids = tokenizer().encode(text)
    assert theirs(text)["input_ids"] == ids
    assert theirs.decode(ids) == text
    assert theirs.eos_token_id == tokenizer().end_id
    assert theirs.pad_token is None
    assert theirs.model_max_length == config(architecture).context


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_pipeline_writes_what_we_write(architecture: str, exports: dict[str, Path]) -> None:
    from transformers import pipeline

    write = pipeline("text-generation", model=str(exports[architecture]))
    known = tokenizer()
    decoder = Decoder(model(architecture))
    logits, ids = decoder.read(known.encode("import numpy"))[0], []
    while len(ids) < 10 and int(logits.argmax()) != known.end_id:
        ids.append(int(logits.argmax()))
        logits = decoder.add(ids[-1])
    wanted = known.decode(ids)
    assert write("import numpy", max_new_tokens=10, return_full_text=False)[0]["generated_text"] == wanted
    write("import numpy")  # as many tokens as it takes by itself stay inside of the window


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_generation_stops_at_the_end_token(architecture: str, exports: dict[str, Path], tmp_path: Path) -> None:
    """Defect 5's other half: padding is not the end token, and the end token ends."""
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(exports[architecture])
    assert theirs.generation_config.eos_token_id == tokenizer().end_id
    assert theirs.generation_config.pad_token_id is None
    with torch.no_grad():  # the end token becomes the most probable one everywhere
        theirs.lm_head.weight = torch.nn.Parameter(torch.zeros_like(theirs.lm_head.weight))
        theirs.lm_head.bias = torch.nn.Parameter(torch.zeros(theirs.lm_head.weight.shape[0]))
        theirs.lm_head.bias[tokenizer().end_id] = 1.0
        written = theirs.generate(torch.tensor([[1, 2]]), attention_mask=torch.ones(1, 2), pad_token_id=0)
    assert written.tolist() == [[1, 2, tokenizer().end_id]]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_import_of_an_export_is_the_same_run(architecture: str, exports: dict[str, Path], tmp_path: Path) -> None:
    import_folder(exports[architecture], tmp_path / "run")
    opened, wanted = open_run(tmp_path / "run"), model(architecture)
    assert opened.recipe.model == wanted.config
    assert opened.tokenizer.encode(SOURCE) == tokenizer().encode(SOURCE)
    for name, tensor in wanted.state_dict().items():
        assert torch.equal(opened.model.state_dict()[name], tensor), name


def saved(architecture: str, folder: Path, **changes: Any) -> Any:
    """A model of transformers' own making, with our tokenizer beside it."""
    from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(1)
    size, end = tokenizer().vocabulary_size, tokenizer().end_id
    if architecture == "gpt2":
        sizes = {"vocab_size": size, "n_positions": 24, "n_embd": 16, "n_layer": 3, "n_head": 2}
        made = GPT2LMHeadModel(GPT2Config(**(sizes | {"bos_token_id": end, "eos_token_id": end} | changes)))
    else:
        sizes = {"vocab_size": size, "max_position_embeddings": 24, "hidden_size": 16, "intermediate_size": 64}
        heads = {"num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8}
        ends = {"bos_token_id": end, "eos_token_id": end, "tie_word_embeddings": True}
        made = Qwen3ForCausalLM(Qwen3Config(**(sizes | heads | ends | changes)))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    made.eval().save_pretrained(folder)
    tokenizer().save(folder / "tokenizer.json")
    return made


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("shard", ["5GB", "20KB"])
def test_what_transformers_saved_is_imported_exactly(architecture: str, shard: str, tmp_path: Path) -> None:
    theirs = saved(architecture, tmp_path / "theirs")
    shutil.rmtree(tmp_path / "theirs")
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size=shard)
    tokenizer().save(tmp_path / "theirs" / "tokenizer.json")
    import_folder(tmp_path / "theirs", tmp_path / "run")
    ours = open_run(tmp_path / "run").model
    ids = torch.randint(0, ours.config.vocabulary_size, (2, 24))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-5)
    export_run(tmp_path / "run", tmp_path / "again")
    again = load_file(tmp_path / "again" / "model.safetensors")
    for name, tensor in theirs.state_dict().items():
        assert name == "lm_head.weight" or torch.equal(again[name], tensor), name


def test_the_names_of_the_published_gpt2_file_are_known() -> None:
    ours = model("gpt2")
    theirs = layout.their_weights(ours.state_dict(), ours.config)
    old = {name.removeprefix("transformer."): tensor for name, tensor in theirs.items()}
    old |= {"h.0.attn.bias": torch.ones(1, 1, 32, 32), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    read = layout.our_weights(old, ours.state_dict(), ours.config)
    assert all(torch.equal(read[name], tensor) for name, tensor in ours.state_dict().items())


def test_half_precision_is_read_exactly() -> None:
    ours = model("modern")
    halves = {n: t.bfloat16() for n, t in layout.their_weights(ours.state_dict(), ours.config).items()}
    read = layout.our_weights(halves, ours.state_dict(), ours.config)
    assert all(torch.equal(read[name], tensor.bfloat16().float()) for name, tensor in ours.state_dict().items())


@pytest.mark.parametrize(
    ("architecture", "changes", "reason"),
    [
        ("gpt2", {"activation_function": "relu"}, "activation_function must be 'gelu_new'"),
        ("gpt2", {"n_inner": 20}, "n_inner must be None or 64"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ("modern", {"num_key_value_heads": 1}, "num_key_value_heads must be None or 2; got 1"),
        ("modern", {"intermediate_size": 48}, "intermediate_size must be 64; got 48"),
        ("modern", {"tie_word_embeddings": False}, "tie_word_embeddings must be True"),
        ("modern", {"rope_theta": 5e5}, "rope_theta must be 10000.0"),
        ("modern", {"eos_token_id": 3}, "eos_token_id must be that of"),
        ("modern", {"vocab_size": 300}, "a row for each of the tokenizer's"),
        ("modern", {"model_type": "llama"}, "model_type must be gpt2 or qwen3"),
        ("modern", {"hidden_size": "16"}, "must have the sizes"),
        ("modern", {"num_hidden_layers": None}, "must have the sizes"),
        ("modern", {"num_hidden_layers": 4}, "is missing"),
        ("modern", {"num_hidden_layers": 2}, "does not belong"),
    ],
)
def test_other_networks_are_refused_by_name(
    architecture: str, changes: dict[str, Any], reason: str, exports: dict[str, Path], tmp_path: Path
) -> None:
    saved(architecture, tmp_path / "theirs")
    file = tmp_path / "theirs" / "config.json"
    settings = json.loads(file.read_text())
    if "rope_theta" in changes:
        settings["rope_parameters"]["rope_theta"] = changes["rope_theta"]
    file.write_text(json.dumps(settings | changes))
    with pytest.raises(ReadError, match=reason):
        import_folder(tmp_path / "theirs", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", None),
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("model.safetensors", None),
        ("model.safetensors", b"\x10"),
        ("tokenizer.json", None),
        ("tokenizer.json", b'{"model": {"type": "WordPiece"}}'),
    ],
)
def test_a_damaged_folder_is_refused(
    name: str, content: bytes | None, exports: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(exports["modern"], tmp_path / "theirs")
    (tmp_path / "theirs" / name).unlink()
    if content is not None:
        (tmp_path / "theirs" / name).write_bytes(content)
    with pytest.raises(ReadError, match=re.escape(name)):
        import_folder(tmp_path / "theirs", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_untied_output_is_refused(tmp_path: Path) -> None:
    ours = model("gpt2")
    theirs = layout.their_weights(ours.state_dict(), ours.config)
    theirs["lm_head.weight"] = theirs["transformer.wte.weight"].clone()
    layout.our_weights(theirs, ours.state_dict(), ours.config)
    theirs["lm_head.weight"] += 1
    with pytest.raises(ReadError, match="tied"):
        layout.our_weights(theirs, ours.state_dict(), ours.config)


def test_an_export_does_not_touch_a_folder_that_holds_something(runs: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        export_run(runs["gpt2"], target)
    assert [p.name for p in target.iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError, match="is a file"):
        export_run(runs["gpt2"], target / "mine.txt", force=True)
    export_run(runs["gpt2"], target, force=True)
    assert (target / "mine.txt").read_text() == "mine"
    assert len(load_file(target / "model.safetensors")) == 2 + 12 * 2 + 2


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("trainwright_lm.exchange.export.written_card", OSError(28, "No space left on device")),
        ("trainwright_lm.exchange.export.save_file", SafetensorError("No space left on device")),
        ("trainwright_lm.exchange.export._move", OSError(28, "No space left on device")),
    ],
)
def test_a_failed_export_leaves_nothing(
    place: str, error: Exception, runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(place, full)
    with pytest.raises(WriteError, match="No space left"):
        export_run(runs["gpt2"], tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_what_is_no_run_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        export_run(tmp_path / "nothing", tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_the_command_exports_where_it_stands(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainwright_lm.commands.run import export as command

    monkeypatch.chdir(tmp_path)
    command(runs["modern"], Path("out"))
    assert "model.safetensors" in capsys.readouterr().out


def header(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_the_card_says_what_is_known(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["modern"], tmp_path / "run")
    (tmp_path / "run" / "evaluation.json").write_text(json.dumps(EVALUATION))
    text = written_card(open_run(tmp_path / "run"), "me/tiny")
    head = header(text)
    assert head["license"] == "other"
    assert head["language"] == ["code"]
    assert {"code-completion", "pandas", "sklearn"} <= set(head["tags"])
    for line in (
        "| found | 1,200 | 3.0 |",
        "| kept | 300 | 1.0 |",
        "The splits share no package or repository, and no identical or nearly identical files.",
        "| train | 280 | 0.9 | 250,000 |",
        "| MIT | 200 | 75.0% |",
        "| | exact match | ",
        "|---|---:|",
        "| this model and the file's text above (`trainwright lm complete`) | 25.0 (20.0 to 30.0) | ",
    ):
        assert line in text.splitlines(), text
    assert "hub:codeparrot/codeparrot-clean" in text
    assert "someone" not in text  # where the trainer's own files lay is nobody's business
    assert "1.2500 nats per token" in text
    recipe = tomllib.loads(text.split("```toml\n")[1].split("```")[0])
    assert recipe_from(recipe) == open_run(tmp_path / "run").recipe


def test_results_of_another_checkpoint_are_not_in_the_card(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["modern"], tmp_path / "run")
    (tmp_path / "run" / "evaluation.json").write_text(json.dumps(EVALUATION | {"step": 6}))
    assert "Not evaluated." in written_card(open_run(tmp_path / "run"), "x")
    (tmp_path / "run" / "evaluation.json").write_text('{"step": 7}')
    with pytest.raises(ReadError, match="evaluate again"):
        written_card(open_run(tmp_path / "run"), "x")


def test_a_card_of_an_import_says_so(exports: dict[str, Path], tmp_path: Path) -> None:
    import_folder(exports["gpt2"], tmp_path / "run")
    text = written_card(open_run(tmp_path / "run"), "x")
    assert "imported" in text
    assert header(text)["license"] == "other"


@pytest.mark.parametrize(
    ("licences", "wanted"),
    [
        ({}, "other"),
        ({"MIT": {}}, "mit"),
        ({"unknown": {}}, "other"),
        ({"MIT": {}, "ISC": {}}, "other"),
        ({"HPND": {}}, "other"),
    ],
)
def test_the_cards_licence_is_the_one_of_all_files(licences: dict[str, Any], wanted: str) -> None:
    assert licence(licences) == wanted
