"""Single rows: which are chosen, how they become readable, and that reports show them escaped."""

import base64
import io
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from trainwright.core import Finding, NamedRows, Report
from trainwright.core.report import from_dict, to_dict
from trainwright.core.sample import MASKED, NOT_FINITE, PADDING, SPECIAL, TORN, WORST, Sample, SamplePart, Span
from trainwright.core.sheet import Sheet
from trainwright.errors import UsageError
from trainwright.options import Options, with_settings
from trainwright.rehearsal.names import seek_names
from trainwright.rehearsal.readable import MOST_CHARACTERS, Names, TokenDecoder, draw, read_all
from trainwright.rehearsal.record import Answers, LabelKind, Output, PairSource, Record
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.sample_words import MOST_SAMPLES, tell_sample
from trainwright.rehearsal.sampling import Offer, Sampler, lengths_of
from trainwright.rehearsal.watch.torch.generated import real_tokens
from trainwright.rehearsal.watch.torch.rows import _keys
from trainwright.report import html, terminal
from trainwright.report.samples import brief_rows, visible
from trainwright.review.sheet import sheet_of

THREE = Output(LabelKind.CLASSES, 3)
WORDS = ("[PAD]", "[CLS]", "[SEP]", "good", "bad", "film", "a", "very", "the", "end", "was", "not")


def tokenizer() -> TokenDecoder:
    return replace(TokenDecoder.of_words(WORDS), special=frozenset({0, 1, 2}), padding=0)


def classified(rows: int = 60, *, trains: bool = False, update: int = 10, evaluation: int | None = 1) -> Answers:
    """Row 7 is far off, and the only one of class 2 is row 30."""
    labels = np.arange(rows) % 2
    labels[30] = 2
    losses = np.full(rows, 0.1)
    losses[7] = 5.0
    guesses = labels.copy()
    guesses[7] = 0
    return Answers(
        output=THREE, update=update, trains=trains, labels=labels, guesses=guesses, log_losses=losses,
        certainties=np.full(rows, 0.9), keys=np.arange(rows) * 17, numbers=np.arange(rows) + 1000, total=rows,
        model=1, data=2 + trains, evaluation=evaluation,
    )  # fmt: skip


def table(row: int) -> list:
    return [("0", np.array([row, -0.5, 2.0], dtype=np.float32))]


def offered(sampler: Sampler, answers: Answers, take=table, **more) -> None:
    sampler.offer(Offer(answers=answers, rows=np.arange(len(answers.labels)), take=take, **more))


def test_rows_are_chosen_for_a_reason_each_and_the_same_ones_again() -> None:
    lengths = np.full(60, 20)
    lengths[[3, 44]] = 5, 90
    found = []
    for _ in range(2):
        sampler = Sampler()
        offered(sampler, classified(), lengths=lengths)
        found.append({reason: one.number for one, _ in sampler.chosen() for reason in one.why})
    assert found[0] == found[1]
    assert found[0]["shortest"] == 1003 and found[0]["longest"] == 1044 and found[0]["rarest label"] == 1030
    assert found[0][WORST] is not None and any(
        one.number == 1007 and WORST in one.why and one.guess == 0 for one, _ in sampler.chosen()
    )


def test_no_random_number_is_drawn() -> None:
    before = np.random.get_state()[1].tolist()
    offered(Sampler(), classified())
    assert np.random.get_state()[1].tolist() == before


def test_a_row_that_is_drawn_again_is_shown_once() -> None:
    sampler, first = Sampler(), classified(trains=True, evaluation=None)
    again = replace(first, log_losses=first.log_losses * 1.01)
    for answers in (first, again):
        offered(sampler, answers)
    numbers = [one.number for one, _ in sampler.chosen()]
    assert len(numbers) == len(set(numbers))
    assert [one.loss for one, _ in sampler.chosen() if one.number == 1007] == [5.05]


def test_the_last_evaluation_remains_unless_it_is_tiny() -> None:
    sampler = Sampler()
    offered(sampler, classified(update=10, evaluation=1))
    offered(sampler, classified(update=20, evaluation=2))
    assert {one.update for one, _ in sampler.chosen()} == {20}
    tiny = classified(update=30, evaluation=3)
    tiny = replace(
        tiny, **{name: getattr(tiny, name)[:2] for name in ("labels", "guesses", "log_losses", "certainties", "keys", "numbers")}
    )  # fmt: skip
    offered(sampler, tiny)
    assert {one.update for one, _ in sampler.chosen()} == {20}


def test_a_row_without_a_finite_loss_is_not_the_worst_one() -> None:
    answers = classified()
    answers.log_losses[9] = np.nan
    sampler = Sampler()
    offered(sampler, answers)
    assert all(one.number != 1009 for one, _ in sampler.chosen() if WORST in one.why)


def read(take, names: Names, answers: Answers | None = None, **more):
    sampler = Sampler()
    offered(sampler, answers or classified(), take=take, **more)
    return read_all(sampler.chosen(), names)[0]


def test_text_shows_special_tokens_and_padding() -> None:
    ids = np.array([1, 8, 5, 10, 3, 2, 0, 0])
    mask = np.array([1, 1, 1, 1, 1, 1, 0, 0])
    one = read(lambda row: [("input_ids", ids), ("attention_mask", mask)], Names(decoders=[tokenizer()]))
    (part,) = one.parts
    assert [(span.text.strip(), span.kind) for span in part.spans] == [
        ("[CLS]", SPECIAL), ("the film was good", ""), ("[SEP]", SPECIAL), ("[PAD] × 2", PADDING),
    ]  # fmt: skip
    assert part.note == "6 of 8 places, the rest padding"


PAIR = np.array([1, 5, 2, 8, 3, 2])
FIRST, SECOND = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 1, 1, 0])


@pytest.mark.parametrize(
    ("ids", "beside", "note"),
    [
        (PAIR, {"token_type_ids": FIRST, "attention_mask": np.ones(6, int)}, "6 tokens"),
        (PAIR, {"1": FIRST, "2": np.ones(6, int)}, "6 tokens"),
        (PAIR, {"1": FIRST}, "6 tokens"),
        (np.array([1, 5, 2, 8, 2, 0]), {"types": SECOND, "1": np.array([1, 1, 1, 1, 1, 0])}, "5 of 6 places, the rest padding"),
        (np.array([0, 1, 5, 2, 8, 2]), {"1": FIRST, "2": np.array([0, 1, 1, 1, 1, 1])}, "5 of 6 places, the rest padding"),
        (np.array([1, 5, 8, 2, 0, 0]), {"src_key_padding_mask": np.array([0, 0, 0, 0, 1, 1], bool)}, "4 of 6 places, the rest padding"),
        (PAIR, {"special_tokens_mask": np.array([1, 0, 1, 0, 0, 1])}, "6 tokens"),
        (np.array([1, 5, 8, 2, 0, 0]), {"attention_mask": np.array([0, 0, 0, 0, 1, 1])}, "4 of 6 places, the rest padding"),
    ],
)  # fmt: skip
def test_the_types_of_tokens_are_no_mask(ids: np.ndarray, beside: dict, note: str) -> None:
    inputs = [("input_ids", ids), *beside.items()]
    one = read(lambda row: inputs, Names(decoders=[tokenizer()]))
    assert one.parts[0].note == note
    real = real_tokens(ids, inputs, 0)
    assert int(real.sum()) == int(note.split(" ")[0])
    (length,) = lengths_of([(name, values[None]) for name, values in inputs])
    assert length == np.flatnonzero(real)[-1] + 1


def test_without_a_tokenizer_the_ids_are_shown_and_that_is_said() -> None:
    one = read(lambda row: [("0", np.array([11, 8, 5, 10, 3, 0, 0]))], Names())
    assert one.parts[0].spans[0].text == "11 8 5 10 3 " and "no tokenizer was found" in one.parts[0].note


def test_a_long_text_is_cut_and_says_how_much_follows() -> None:
    one = read(lambda row: [("0", np.full(300, 7))], Names(decoders=[tokenizer()]))
    assert len(one.parts[0].spans[0].text) == MOST_CHARACTERS
    assert one.parts[0].note.endswith("more characters")


def language_model(shown: np.ndarray, target: np.ndarray):
    """A row of tokens with a label for each."""
    output = Output(LabelKind.CLASSES, len(WORDS))
    good = np.flatnonzero(target != -100)
    count = len(good)
    answers = Answers(
        output=output, update=5, trains=False, labels=target[good], guesses=target[good], log_losses=np.full(count, 0.5),
        total=count, model=1, data=2, evaluation=1,
    )  # fmt: skip
    sampler = Sampler()
    sampler.offer(
        Offer(answers=answers, rows=np.zeros(count, int), take=lambda row: [("0", shown)], labels=lambda row: target)
    )
    return read_all(sampler.chosen(), Names(decoders=[tokenizer()]))[0]


def test_tokens_that_the_loss_does_not_count_are_masked() -> None:
    shown = np.array([1, 8, 5, 10, 3, 2])
    target = np.array([-100, -100, 10, 3, 2, -100])  # the prompt does not count; the labels are the next tokens
    one = language_model(shown, target)
    assert [(span.text, span.kind) for span in one.parts[0].spans if span.kind in ("", MASKED)] == [
        ("the film", MASKED), ("was good", ""),
    ]  # fmt: skip
    assert one.target == () and one.right == (3, 3)


def test_labels_that_are_not_the_next_tokens_are_told_beside_them() -> None:
    one = language_model(np.array([1, 8, 5, 10, 3, 2]), np.array([1, 8, 5, -100, 3, 2]))
    assert one.target[0].text == "[CLS] the film good [SEP]"


def png_of(uri: str) -> tuple[int, int, bytes]:
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    size = data.index(b"IDAT")
    length = int.from_bytes(data[size - 4 : size], "big")
    return (
        int.from_bytes(data[16:20], "big"),
        int.from_bytes(data[20:24], "big"),
        zlib.decompress(data[size + 4 : size + 4 + length]),
    )


def test_a_picture_is_drawn_with_its_normalization_undone() -> None:
    original = np.linspace(0, 1, 3 * 16 * 16).reshape(3, 16, 16)
    mean, deviation = np.array([0.5, 0.4, 0.3]), np.array([0.2, 0.25, 0.3])
    changed = (original - mean[:, None, None]) / deviation[:, None, None]
    uri, note = draw(changed.astype(np.float32), [(mean, deviation)])
    width, height, pixels = png_of(uri)
    assert (width, height, note) == (16, 16, "3×16×16, normalization undone")
    assert abs(pixels[1] - 255 * original[0, 0, 0]) <= 1 and pixels[0] == 0


def test_a_normalization_that_does_not_fit_is_not_undone() -> None:
    _, note = draw(np.linspace(-4, 9, 64).reshape(1, 8, 8), [(np.array([0.5]), np.array([0.5]))])
    assert note == "1×8×8, stretched from -4 to 9"


@pytest.mark.parametrize("array", [np.zeros((3, 200, 150)), np.full((8, 8), np.nan), np.zeros((9, 9, 4), np.uint8)])
def test_any_picture_is_small(array: np.ndarray) -> None:
    width, height, _ = png_of(draw(array, [])[0])
    assert max(width, height) <= 64


def test_numbers_are_a_table_a_line_or_several() -> None:
    names = Names(columns=[("age", "income", "debt")])
    assert read(table, names).parts[0].names == ("age", "income", "debt")
    wave = read(lambda row: [("0", np.sin(np.arange(16000.0)))], Names()).parts[0]
    assert wave.form == "wave" and len(wave.lines[0]) == 120 and max(wave.lines[0]) > 0.9
    series = read(lambda row: [("0", np.zeros((40, 3)))], Names()).parts[0]
    assert series.form == "series" and len(series.lines) == 3


def test_names_that_are_not_unambiguous_are_not_used() -> None:
    names = Names(classes=[("a", "b", "c"), ("x", "y", "z")])
    assert names.classes_of(THREE) == ()
    assert Names(classes=[("a", "b", "c"), ("a", "b", "c")]).classes_of(THREE) == ("a", "b", "c")
    assert names.classes_of(Output(LabelKind.NUMBERS, 3)) == ()


def test_names_are_found_in_the_scripts_variables() -> None:
    class Config:
        def __init__(self) -> None:
            self.id2label = {0: "LABEL_0", 1: "LABEL_1"}

    class Data:
        def __init__(self) -> None:
            self.classes = ["cat", "dog"]

    names = Names()
    stoi = {character: number for number, character in enumerate("abcdefghijkl")}
    word_index = {f"word{number}": number for number in range(1, 30)}  # from 1 on: which ids it names is not known
    seek_names(names, [("config", Config()), ("train_set", Data()), ("stoi", stoi), ("word_index", word_index)])
    assert names.classes == [("cat", "dog")]
    assert [one.decode([0, 1, 2]) for one in names.decoders] == ["abc"]


def recorded(take=table, names: Names | None = None) -> Record:
    sampler, names = Sampler(), names or Names(classes=[("cat", "dog", "<script>alert(1)</script>")])
    held_out, training = classified(), classified(trains=True, evaluation=None)
    offered(sampler, held_out, take=take)
    offered(sampler, training, take=take)
    record = Record(updates=10, answers=[held_out, training], samples=read_all(sampler.chosen(), names))
    record.class_names = {THREE: names.classes_of(THREE)}
    return record


def printed(report: Report, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(terminal.render(report))
    return console.file.getvalue()


def test_a_sheet_has_rows_of_both_sets_with_their_answers() -> None:
    sheet = sheet_of(recorded())
    assert {one.rows_of for one in sheet.samples} == {"held-out", "training"}
    assert len(sheet.samples) <= 2 * MOST_SAMPLES
    worst = next(one for one in sheet.samples if one.row == 1007)
    assert (worst.label, worst.answer, worst.right, worst.loss) == ("1 (dog)", "0 (cat)", False, 5.0)
    assert worst.probability == pytest.approx(0.9)
    assert [row.counts for row in sheet.confused] == [(29, 0, 0), (1, 29, 0), (0, 0, 1)]
    assert {row.label for row in sheet.classes} >= {"0 (cat)", "1 (dog)"}


def test_always_the_same_answer_is_said_by_its_name() -> None:
    record = recorded()
    for one in record.answers:
        one.guesses[:] = 1
    report = Report(script="train.py", sheet=sheet_of(record))
    assert "It always answers 1 (dog): all 60 rows." in printed(report)
    assert "It always answers 1 (dog): all 60 rows." in html.render(report)


def test_a_page_escapes_what_rows_hold() -> None:
    evil = np.array(['<script>alert("row")</script>'], dtype=object)
    sheet = sheet_of(recorded(lambda row: [("<b>name</b>", evil)]))
    page = html.render(Report(script="train.py", sheet=sheet))
    assert "<script>" not in page and "<b>name</b>" not in page
    assert "&lt;script&gt;alert(&#34;row&#34;)&lt;/script&gt;" in page


def test_a_terminal_gets_no_control_characters() -> None:
    evil = np.array(["red \x1b[31m bell\x07 line\nnext \u202e back"], dtype=object)
    text = printed(Report(script="train.py", sheet=sheet_of(recorded(lambda row: [("0", evil)]))))
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert visible("a\nb\x1b") == "a⏎b�"


def test_a_sheet_with_rows_is_read_back() -> None:
    sample = Sample(
        rows_of="held-out", output="", why=("at random",), row=None, update=3, label="0", answer="1", probability=0.5,
        inputs=(SamplePart(name="0", form="series", lines=((1.0, 2.0), (3.0, float("inf")))),
                SamplePart(name="1", form="text", spans=(Span(text="a", kind=MASKED),)),
                SamplePart(name="2", form="table", names=("age",), values=(3.5,))),
        right=False, loss=0.25, target=(Span(text="b"),),
    )  # fmt: skip
    report = Report(script="train.py", sheet=Sheet(updates=3, samples=(sample,)))
    back = from_dict(json.loads(json.dumps(to_dict(report))))
    assert back.sheet is not None and back.sheet.samples == (sample,)


def test_in_a_terminal_rows_are_a_line_each() -> None:
    for width in (80, 100):
        lines = printed(Report(script="train.py", sheet=sheet_of(recorded())), width).split("\n")
        begin = next(i for i, line in enumerate(lines) if line.startswith("samples"))
        assert len([line for line in lines[begin:] if line.strip()]) <= (15 if width == 80 else 8)


def test_in_a_terminal_a_longer_text_shows_the_beginning_of_each_part() -> None:
    words = [*WORDS, *(f"word{i}" for i in range(20))]
    decoder = replace(TokenDecoder.of_words(words), special=frozenset({0, 1, 2}), padding=0)
    for first, second in ((16, 3), (3, 16), (16, 16)):
        ids = np.array([1, *range(12, 12 + first), 2, *range(32 - second, 32), 2, 0])
        lines = brief_rows(Sheet(updates=1, samples=(told_of(ids, decoder),)))
        assert [len(line.cells) for line in lines] == [2, 2] and "answered" in lines[0].cells[1]
        text = lines[1].cells[1]
        assert text.startswith("[CLS]word0 word1") and f"[SEP]word{20 - second} " in text and len(text) <= 100
        assert ("…" in text) and text.endswith("[SEP]")


def told_of(ids: np.ndarray, decoder: TokenDecoder) -> Sample:
    one = read(lambda row: [("0", ids)], Names(decoders=[decoder]))
    return replace(tell_sample(one, (), output="", rows_of="held-out"), why=("at random",))


@pytest.mark.parametrize(("setting", "shown"), [("samples = false", False), ("samples = true", True), ("", True)])
def test_a_setting_leaves_rows_out(tmp_path, setting: str, shown: bool) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.trainwright]\n{setting}\n")
    assert with_settings(Options(), tmp_path / "train.py").samples is shown


def test_a_setting_of_another_kind_is_refused(tmp_path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.trainwright]\nsamples = "no"\n')
    with pytest.raises(UsageError, match="samples must be true or false"):
        with_settings(Options(), tmp_path / "train.py")


def test_a_row_that_a_finding_speaks_of_is_shown() -> None:
    sampler = Sampler()
    offered(sampler, classified(trains=True, evaluation=None))
    sampler.broken = 41, [("0", np.array([1.0, 2.0, 3.0, np.nan]))]
    record = Record(updates=10, answers=[classified(trains=True)], samples=read_all(sampler.chosen(), Names()))
    sheet = sheet_of(record)
    assert [one.row for one in sheet.samples if NOT_FINITE in one.why] == [41]
    assert "column 4 nan" in printed(Report(script="train.py", sheet=sheet))


def named(name: str, why: str, **rows) -> Finding:
    return Finding(message="it is so", name=name, rows=NamedRows(why=why, **rows))


def test_rows_of_a_class_that_a_finding_speaks_of_are_shown_first() -> None:
    record = recorded()
    assert not any(why.startswith("class") for one in sheet_of(record).samples for why in one.why)
    found = sheet_of(record, [named("untrained-class", "of a class that no update had", classes=(1,))]).samples
    spoken = [one for one in found if one.why[0] == "untrained-class: of a class that no update had"]
    assert {one.rows_of for one in spoken} == {"held-out", "training"} and {one.label for one in spoken} == {"1 (dog)"}
    assert found[0] == spoken[0]


def test_equal_rows_with_other_labels_are_shown_where_a_finding_speaks_of_them() -> None:
    recorder = Recorder()
    torn = replace(classified(trains=True, evaluation=None), keys=np.arange(60) // 2 * 17)
    recorder.add_answers(torn)
    recorder.offer(Offer(answers=torn, rows=np.arange(60), take=table))
    assert recorder.sampler is not None
    record = Record(updates=10, answers=[torn], samples=read_all(recorder.sampler.chosen(), Names()))
    assert not any(TORN in why for one in sheet_of(record).samples for why in one.why)
    found = sheet_of(record, [named("torn-labels", TORN, kept_as=TORN)]).samples
    pair = [one for one in found if one.why[0] == f"torn-labels: {TORN}"]
    assert len(pair) == 2 and len({one.label for one in pair}) == 2
    assert len({(one.row - 1000) // 2 for one in pair if one.row is not None}) == 1


def test_sources_are_known() -> None:
    sampler = Sampler()
    offered(sampler, classified())
    assert {one.source for one, _ in sampler.chosen()} == {PairSource.LOSS}


def test_rows_are_known_by_all_the_tokens_that_are_read() -> None:
    """Types of tokens are no mask, an inverted mask is one, and padding adds nothing."""
    pairs, types = np.array([[1, 5, 2, 8], [1, 6, 2, 8]]), np.array([[0, 0, 1, 1], [0, 0, 1, 1]])
    first, second = _keys([("input_ids", pairs), ("token_type_ids", types), ("attention_mask", np.ones((2, 4), int))])
    assert first != second
    padded = np.pad(pairs, ((0, 0), (0, 3)))
    for name, mask in (("attention_mask", padded > 0), ("attention_mask", padded == 0), ("pad_mask", padded == 0)):
        keys = _keys([("input_ids", padded), (name, mask.astype(int))])
        assert keys[0] != keys[1]
