"""Completions: where they begin, how each token is chosen, where they end."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_runs import SOURCE, model, run, tokenizer
from trainwright.errors import UsageError
from trainwright_lm.completion import complete as completing
from trainwright_lm.completion.complete import Completer, Sampling, extent
from trainwright_lm.completion.endings import line_end, repetition, statement_end
from trainwright_lm.network.decoder import Decoder
from trainwright_lm.runs.folder import Run, open_run

ARCHITECTURES = ("modern", "gpt2")


class Replaying:
    """Stands in for a Decoder whose model knows one text by heart, in its tokens, and nothing else."""

    context = 512

    def __init__(self, text: str) -> None:
        known = tokenizer()
        self.known = [known.end_id, *known.encode(text), known.end_id]
        self.ids: list[int] = []

    def read(self, ids: Sequence[int], last: int = 1) -> torch.Tensor:
        self.ids = list(ids)
        return torch.stack([self._after(self.ids[: len(ids) - i]) for i in reversed(range(last))])

    def take_back(self, count: int) -> None:
        del self.ids[len(self.ids) - count :]

    def add(self, token: int) -> torch.Tensor:
        self.ids.append(token)
        return self._after(self.ids)

    def _after(self, ids: Sequence[int]) -> torch.Tensor:
        """What follows the longest end of the ids that the text has; longer ends count for more."""
        logits = torch.zeros(tokenizer().vocabulary_size)
        for length in range(1, len(ids) + 1):
            for start in range(len(self.known) - length):
                if self.known[start : start + length] == list(ids[-length:]):
                    logits[self.known[start + length]] += 10 * length
        return logits


def complete(opened: Run, prompt: str, *, tokens: int | None = None, statement: bool = False, **drawn: float) -> str:
    """As the command does."""
    sampling = Sampling(**drawn)  # type: ignore[arg-type]
    limit, ending = extent(prompt, tokens=tokens, statement=statement)
    return Completer(opened.model, opened.tokenizer).complete(prompt, limit=limit, ending=ending, sampling=sampling)


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch):
    """Makes a Completer that knows a text by heart."""

    def made(text: str = SOURCE) -> Completer:
        monkeypatch.setattr(completing, "Decoder", lambda model: Replaying(text))
        return Completer(None, tokenizer())  # type: ignore[arg-type]

    return made


def line(completer: Completer, prompt: str) -> str:
    limit, ending = extent(prompt)
    return completer.complete(prompt, limit=limit, ending=ending)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_token_at_a_time_gives_the_logits_of_all_at_once(architecture: str) -> None:
    net = model(architecture)
    ids = torch.randint(0, net.config.vocabulary_size, (net.config.context,)).tolist()
    with torch.inference_mode():
        wanted = net(torch.tensor([ids]))[0]
        decoder = Decoder(net)
        got = [decoder.read(ids[:5], last=3), *(decoder.add(i)[None] for i in ids[5:])]
    torch.testing.assert_close(torch.cat(got), wanted[2:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tokens_taken_back_leave_no_trace(architecture: str) -> None:
    net = model(architecture)
    with torch.inference_mode():
        decoder, fresh = Decoder(net), Decoder(net)
        decoder.read([1, 2, 3, 4, 5])
        decoder.take_back(2)
        fresh.read([1, 2, 3])
        torch.testing.assert_close(decoder.add(9), fresh.add(9))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("context", [1, 2, 7, 32])
def test_a_full_window_goes_on_from_its_newest_half(architecture: str, context: int) -> None:
    net = model(architecture, context=context)
    ids = torch.randint(0, net.config.vocabulary_size, (context + 1,)).tolist()
    with torch.inference_mode():
        decoder = Decoder(net)
        decoder.read(ids[:1])
        for token in ids[1:]:
            got = decoder.add(token)
        wanted = net(torch.tensor([ids[-max(1, context // 2) :]]))[0, -1]
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def test_a_line_ends_before_its_newline(replay) -> None:
    """Defect 14 of the course's recipe: generation runs on after the line that was asked for."""
    assert line(replay(), "import numpy as") == " np"


def test_a_prompt_that_is_a_whole_line_gets_the_next_one(replay) -> None:
    assert line(replay(), "def draw(frame):") == '\n    plt.scatter(frame["x"], frame["y"])'


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(1, len(SOURCE) - 1))
def test_wherever_a_known_text_is_cut_its_own_line_follows(cut: int) -> None:
    completer = Completer.__new__(Completer)
    completer._decoder, completer._tokenizer = Replaying(SOURCE), tokenizer()  # type: ignore[assignment]
    completer._vocabulary, completer._recalls = completing.Vocabulary(tokenizer()), True
    rest = SOURCE[cut:].encode()
    assert line(completer, SOURCE[:cut]) == rest[: line_end(rest)].decode()


def test_a_tail_that_looks_like_the_end_token_is_no_way_to_end(replay) -> None:
    """The end token stands for no text: `<|end` must not be completed to it."""
    longer = completing.Vocabulary(tokenizer()).longer(b"<")
    assert tokenizer().end_id not in longer
    assert line(replay("x = '<|endoftext|>'\n"), "x = '<|end") == "oftext|>'"


def test_ways_are_chosen_by_their_probability() -> None:
    """Two of the prompt's tokens may be taken back: the ways' probabilities are those of the chain rule."""
    known = tokenizer()
    last = known.encode("import nump")[-2:]
    torch.manual_seed(0)
    logits = torch.randn(3, known.vocabulary_size)
    ways = completing.ways_on(logits, last, completing.Vocabulary(known), known)
    shares = logits.softmax(-1)
    for way in range(0, len(ways.ids), 7):
        token, back = int(ways.ids[way]), int(ways.taken_back[way])
        wanted = shares[2 - back, token]
        for place in range(2 - back):
            wanted = wanted * shares[place, last[place]]
        assert float(ways.scores[way].exp()) == pytest.approx(float(wanted), rel=1e-4)
        assert back == 0 or known.token_bytes(token).startswith(known.decode_bytes(last[2 - back :]))


def test_an_empty_prompt_begins_a_file(replay) -> None:
    assert line(replay(), "") == "import numpy as np"


def test_the_end_of_the_document_ends_a_completion(replay) -> None:
    completer = replay("x = 1")
    assert completer.complete("x =", limit=50, ending=None) == " 1"


def test_a_literal_end_token_in_the_prompt_is_text(replay) -> None:
    completer = replay("a = '<|endoftext|>'\nb = 2\n")
    assert line(completer, "a = '<|endoftext|>'\nb") == " = 2"


def test_so_many_tokens_are_written(replay) -> None:
    known = tokenizer()
    prompt = SOURCE[: SOURCE.index("plt.title")]
    written = replay().complete(prompt, limit=3, ending=None)
    assert written == known.decode(known.encode(SOURCE[len(prompt) :])[:3])


@pytest.mark.parametrize("end", [SOURCE, "x" * 500, "\n" * 500, " " * 400 + "\n", "f = 1\n\n\n" * 200])
def test_of_a_long_prompt_the_same_tokens_are_kept_as_of_all_its_tokens(end: str) -> None:
    known = tokenizer()
    prompt = SOURCE * 20 + end
    assert completing.fitting(known, prompt, 32) == known.encode(prompt)[-24:]


def test_a_prompt_longer_than_the_window_keeps_its_end() -> None:
    known = tokenizer()
    assert completing.fitting(known, "import", 32)[0] == known.end_id
    assert len(completing.fitting(known, SOURCE, 1)) == 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_completions_run_past_the_window(architecture: str, tmp_path: Path) -> None:
    opened = open_run(run(tmp_path / "run", architecture))
    written = complete(opened, SOURCE, tokens=100, temperature=1.0, seed=3)
    assert written


def test_bytes_that_are_no_whole_character_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    known = tokenizer()
    ids = [i for byte in "x漢y".encode() for i in range(known.vocabulary_size) if known.token_bytes(i) == bytes([byte])]
    completer = Completer(model("modern"), known)
    texts = [known.token_bytes(i) for i in ids]
    monkeypatch.setattr(completer, "_bytes", lambda *_: iter(texts))
    assert list(completer.pieces("", limit=9)) == ["x", "", "", "漢", "y"]
    monkeypatch.setattr(completer, "_bytes", lambda *_: iter(texts[:3]))
    assert completer.complete("", limit=9, ending=None) == "x"


def test_a_prompt_that_is_no_unicode_is_completed(tmp_path: Path) -> None:
    """Bytes of a command line that are no UTF-8 come as lone surrogates."""
    opened = open_run(run(tmp_path / "run", "modern"))
    complete(opened, "x = '\udcff'\ny = (", statement=True)


def test_the_seed_decides_what_is_drawn(tmp_path: Path) -> None:
    opened = open_run(run(tmp_path / "run", "modern"))
    drawn = [complete(opened, "plt.", tokens=20, temperature=1.0, seed=s) for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_what_is_drawn_follows_the_probabilities() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()

    def shares(temperature: float, top_p: float) -> list[float]:
        choose = completing._chooser(temperature, top_p, torch.Generator().manual_seed(0))
        drawn = [choose(logits) for _ in range(4000)]
        return [drawn.count(i) / 4000 for i in range(4)]

    assert shares(1.0, 1.0) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    assert shares(1.0, 0.7) == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert shares(1.0, 0.01) == [1, 0, 0, 0]
    assert shares(0.5, 1.0) == pytest.approx([0.685, 0.247, 0.062, 0.007], abs=0.03)
    assert shares(0.0, 1.0) == shares(1e-300, 1.0) == [1, 0, 0, 0]
    assert shares(1e30, 1.0) == pytest.approx([0.25] * 4, abs=0.03)


@pytest.mark.parametrize(
    ("written", "end"),
    [
        (b"", None),
        (b"x", None),
        (b"\n\n  ", None),
        (b"x\n", 1),
        (b"x\r\ny", 1),
        (b"\n  x = 1\ny\n", 8),
        (b"  \nx\n", 4),
        (b"ore.score.score.score.score.score", None),
        (b"ore" + b".score" * 6, 9),
        (b'"a"' + b', "b"' * 6, 8),
        (b"s.get" + b"(s.get" * 6, 11),
        (b"1, 2, 3, 4, 5, 6, 7, 8", None),
        (b"n = 1000000000000000", None),
        (b"mask = 0x" + b"00" * 12 + b"ff" * 12, None),
        (b"x = [" + b"0, " * 20, None),
        (b"f(__________________x", None),
        (b"# -------------------------------", None),
        (b"# " + b"-" * 158, None),
        (b"# " + b"-" * 300, 4),
        (b"a, b = None, None, None, None, None", None),
        (b'"a"' + b', "b"' * 5 + b")\n", 29),
        (b"ikitlessagon" + b"al" * 3, None),
        (b"ikitlessagon" + b"al" * 4, 14),
        (b"_x" * 4, 2),
        (("# " + "─" * 120).encode(), None),
        (b"mask = 0x" + b"f" * 32, None),
        (b"ababab", None),
        (b"self.assert" + b"_frame(self.values" * 5, 35),
        (b"a = b" + b", np.random.random(size=(10, 10))" * 4, None),
    ],
)
def test_where_a_line_ends(written: bytes, end: int | None) -> None:
    assert line_end(written) == end


@pytest.mark.parametrize(
    ("prompt", "written", "end"),
    [
        ("plt.plot(", b"\n  x,\n  y\n)\nplt.show()\n", 11),
        ("x = 1", b" + 2\ny\n", 4),
        ("x = [1,", b" 2]\n", 3),
        ("x = [1,", b" 2\n", None),
        ("s = '''a", b"(\n'''\nb\n", 5),
        ("s = '''a", b"\n(\n", None),
        ("s = '('", b"\n)\n", 2),
        ("f(')', ", b"\n1)\n", 3),
        ("x = 1 # (", b"[\ny\n", 1),
        ("x = 1 + \\", b"\n 2\n", 3),
        ('s = "a\\"(', b'"\ny', 1),
        ('s = "open', b"\ny = (\n1)\n", 9),
        (")]", b"x\n", 1),
        ("if a:", b"\n    f(\n1)\n", 10),
        ('s = """\\', b"", None),
        ("f(", b"\nx" + b", y" * 6, 5),
        ("f(", b"\n    x" + b",\n    y" * 6, 13),
        ("f(", b"\n    0, 0, 0, 0, 0, 0, 0, 0," * 7, None),
    ],
)
def test_where_a_statement_ends(prompt: str, written: bytes, end: int | None) -> None:
    assert statement_end(prompt)(written) == end


UNITS = st.text("abz_(,. \n", min_size=2, max_size=60).map(str.encode).filter(lambda unit: len(set(unit) & set(b"abz")))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([b"", b"x = ", b"\n    f("]), UNITS)
def test_a_unit_of_letters_over_and_over_ends_a_completion_after_one_or_two_copies(before: bytes, unit: bytes) -> None:
    """Wherever the repetition is noticed; a letter alone is a rule, as dashes are."""
    ends = [end for size in range(1, 8 * len(unit)) if (end := repetition(before + (unit * 8)[:size])) is not None]
    assert ends or len(set(unit)) == 1 or len(unit) <= len(before) + 2
    assert all(0 < end <= len(before) + 2 * len(unit) for end in ends)


def test_no_line_of_the_standard_library_s_modules_is_cut() -> None:
    """As it grows, byte by byte: what a completion would be cut at. Tables of data are the exception."""
    folder = Path(subprocess.__file__).parent
    for name in ("subprocess", "argparse", "ast", "dataclasses", "inspect", "statistics", "textwrap", "typing"):
        for line in (folder / f"{name}.py").read_bytes().split(b"\n"):
            assert [end for size in range(len(line)) if (end := repetition(line[:size])) is not None] == [], line


def test_a_statement_goes_over_lines(replay) -> None:
    text = "plt.plot(\n    x,\n    y,\n)\nplt.show()\n"
    completer = replay(text)
    limit, ending = extent("plt.plot(", statement=True)
    assert completer.complete("plt.plot(", limit=limit, ending=ending) == "\n    x,\n    y,\n)"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens": 0},
        {"tokens": 3, "statement": True},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"seed": -1},
        {"seed": 2**63},
    ],
)
def test_numbers_that_do_not_fit_are_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    opened = open_run(run(tmp_path / "run", "modern"))
    with pytest.raises(UsageError):
        complete(opened, "x", **wrong)  # type: ignore[arg-type]


def test_ids_that_the_tokenizer_does_not_have_are_never_written() -> None:
    """A model from elsewhere may have more rows than its tokenizer has tokens."""
    known = tokenizer()
    net = model("modern", vocabulary_size=known.vocabulary_size + 56)
    with torch.no_grad():
        net.embedding.weight[known.vocabulary_size :] *= 100
    completer = Completer(net, known)
    completer.complete("x = ", limit=30, ending=None, sampling=Sampling(temperature=2.0))


def command(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainwright", "lm", "complete", *words], input=stdin, capture_output=True, text=True
    )


@pytest.mark.slow
def test_the_command_prints_one_line_and_reads_standard_input(tmp_path: Path) -> None:
    folder = str(run(tmp_path / "run", "gpt2"))
    given = command(folder, "plt.sc", "--tokens", "4")
    read = command(folder, "-", "--tokens", "4", stdin="plt.sc")
    assert given.returncode == read.returncode == 0, given.stderr
    assert given.stdout == read.stdout
    assert given.stdout.endswith("\n")
    wrong = command(folder, "plt.sc", "--count", "2")
    assert wrong.returncode == 2
    assert "--temperature" in wrong.stderr


def test_neither_completing_nor_exporting_needs_transformers_or_what_prepares() -> None:
    code = (
        "import sys, trainwright_lm.completion.complete, trainwright_lm.exchange.export, trainwright_lm.exchange.export\n"
        "heavy = {'transformers', 'datasets', 'pyarrow', 'huggingface_hub', 'rensa', 'pandas', 'sklearn'}\n"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
