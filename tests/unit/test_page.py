"""The page that is sent round: by itself, small, legible in both schemes, and closed off from a notebook around it."""

import base64
import functools
import itertools
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from test_reports import REPORT

from trainwright.core import Report
from trainwright.core.sample import Sample, SamplePart
from trainwright.core.secrets import without_secrets
from trainwright.core.sheet import Curve, Sheet
from trainwright.report import curves, html
from trainwright.report import samples as sample_words
from trainwright.report.charts import axis_of, charts
from trainwright.report.lengths import MOST_BYTES

STYLE = (Path(html.__file__).parent / "style.css").read_text("utf-8")
COLOURS = dict(re.findall(r"--(\w+): light-dark\((#\w{6}, #\w{6})\)", STYLE))
GROUNDS = ("ground", "card", "code")


class Parts(HTMLParser):
    """The elements of a page, each with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def colour(name: str, scheme: int) -> tuple[float, ...]:
    code = COLOURS[name].split(", ")[scheme]
    return tuple(int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))


def mixed(above: tuple[float, ...], below: tuple[float, ...], share: float) -> tuple[float, ...]:
    return tuple(share * a + (1 - share) * b for a, b in zip(above, below, strict=True))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """By WCAG 2."""

    def luminance(of: tuple[float, ...]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in of]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_and_lines_stand_out_in_both_schemes(scheme: int) -> None:
    for ground in GROUNDS:
        below = colour(ground, scheme)
        for text in ("text", "soft", "error", "warning", "note", "ok"):
            assert contrast(colour(text, scheme), below) >= 4.5, (text, ground)
    for line in ("s0", "s1", "s2", "s3", "s4"):
        assert contrast(colour(line, scheme), colour("card", scheme)) >= 3, line
    tints = re.findall(
        r"color-mix\(in srgb, var\(--(\w+)\) (\d+%|var\(--share\)), (?:transparent|var\(--card\))\)", STYLE
    )
    assert len(tints) == STYLE.count("color-mix(")
    for name, share in tints:
        part = 0.4 if share == "var(--share)" else int(share[:-1]) / 100  # samples.html: at most so much
        for tone in ("ok", "warning", "error") if name == "tone" else (name,):
            for ground in ("card", "code"):
                tinted = mixed(colour(tone, scheme), colour(ground, scheme), part)
                for text in ("text", *((tone,) if part < 0.14 and (name == "tone") == (ground == "card") else ())):
                    assert contrast(colour(text, scheme), tinted) >= 4.5, (text, name, share, ground)


@functools.cache
def large() -> Report:
    """More than any run has, with pictures that do not compress."""
    noise = random.Random(0)
    picture = "data:image/png;base64," + base64.b64encode(noise.randbytes(12_000)).decode()
    sheet = REPORT.sheet
    assert sheet is not None
    sample = replace(sheet.samples[0], inputs=(SamplePart(name="", form="picture", picture=picture),))
    updates = tuple(range(60))
    sheet = replace(
        sheet,
        curves=tuple(Curve(name=f"{i}_loss", updates=updates, values=tuple(noise.random() for _ in updates)) for i in range(50)),
        samples=(sample,) * 300,
        **{name: getattr(sheet, name) * 90 for name in ("scores", "own", "classes", "outputs", "columns", "layers", "pieces", "drawn")},
        generated=tuple(replace(sheet.generated[0], text="word " * 9_000) for _ in range(40)),
    )  # fmt: skip
    findings = tuple(replace(f, message="word " * 2_000) for f in REPORT.findings) * 10
    return replace(REPORT, sheet=sheet, findings=findings, internal_errors=("x" * 9_999,) * 99)


def test_a_page_is_small_whatever_is_in_the_report_and_says_what_is_cut() -> None:
    page = html.render(large())
    assert len(page.encode()) < MOST_BYTES
    assert len(html.fragment(large()).encode()) < MOST_BYTES
    assert "of 300 single rows" in page and "of 40 findings" in page and "more" in page and "characters)" in page
    assert "leaves out" not in html.render(REPORT)


def test_pictures_are_left_out_before_anything_else() -> None:
    sheet = large().sheet
    assert sheet is not None and REPORT.sheet is not None
    pictures = tuple(replace(sheet.samples[0], rows_of=of) for of in ("held-out", "training") for _ in range(8))
    page = html.render(replace(REPORT, sheet=replace(REPORT.sheet, samples=pictures + pictures)))
    assert len(page.encode()) < MOST_BYTES and "leaves out 21 of 32 single rows, so that" in page
    assert "Held-out rows" in page and "Training rows" in page


@pytest.mark.parametrize("report", [REPORT, Report(script="train.py"), large()], ids=["all", "nothing", "large"])
def test_a_page_needs_nothing_else_and_can_be_read_aloud(report: Report) -> None:
    page, fragment = html.render(report), html.fragment(report)
    for text in (page, fragment):
        assert not re.search(r"<script|<link|https?:|url\(|@import|@font-face|\son\w+=", text)
        found = Parts(text).found
        levels = [int(tag[1]) for tag, _ in found if re.fullmatch("h[1-6]", tag)]
        assert levels.count(1) == 1 and levels[0] == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
        assert all(given.get("role") == "img" and given.get("aria-label") for tag, given in found if tag == "svg")
        assert all(given.get("alt") for tag, given in found if tag == "img")
        assert not re.search(
            r"=\"[^\"]*\b(?:nan|inf)\b[%\"]",
            re.sub(r"<title>.*?</title>|aria-label=\"[^\"]*\"|title=\"[^\"]*\"", "", text),
        )
    ids = [given["id"] for _, given in Parts(page).found if "id" in given]
    led = [(given["href"] or "")[1:] for tag, given in Parts(page).found if tag == "a"]
    assert led == ids and len({*ids}) == len(ids)
    assert not any("id" in given for _, given in Parts(fragment).found)  # a notebook shows several


def test_the_style_stays_within_the_report() -> None:
    text, depth, rules = re.sub(r"/\*.*?\*/", "", STYLE, flags=re.DOTALL), 0, [""]
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        rules[-1] += character if depth == 0 and character != "}" else ""
        if character == "}" and depth == 0:
            rules.append("")
    selectors = [one.strip() for rule in rules if rule.strip() for one in rule.split(",")]
    assert len(selectors) == 6
    assert all(re.search(r"\.trainwright$", one) for one in selectors), selectors


def test_numbers_of_one_measure_share_a_chart() -> None:
    names = (
        "loss",
        "val_loss",
        "evaluation loss",
        "train/acc",
        "eval acc",
        "learning rate",
        "learning rate of b",
        "epoch",
    )
    of = Sheet(updates=9, curves=tuple(Curve(name=name, updates=(1, 9), values=(1.0, 2.0)) for name in names))
    assert [[c.name for c in chart.curves] for chart in charts(of)] == [
        ["loss", "val_loss", "evaluation loss"], ["train/acc", "eval acc"], ["learning rate", "learning rate of b"], ["epoch"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "is_log", "ticks"),
    [
        ([0, 1], False, (0, 0.25, 0.5, 0.75, 1)),
        ([0.3, 2.31], False, (0, 0.5, 1, 1.5, 2, 2.5)),
        ([5e-5], False, (0, 2.5e-5, 5e-5, 7.5e-5, 1e-4)),
        ([0.0], False, (-1, -0.5, 0, 0.5, 1)),
        ([0.2, 150], True, (0.1, 1, 10, 100, 1000)),
    ],
)
def test_axes_end_at_round_numbers(values: list[float], is_log: bool, ticks: tuple[float, ...]) -> None:
    assert axis_of(values, is_log=is_log).ticks == pytest.approx(ticks)


@pytest.mark.parametrize(
    "values", [[1e308, -1e308], [1e301, 1e305], [5e-324, 1e308], [1.0, 1.0 + 1e-15], [-3e-320, 2e-320]]
)
def test_no_numbers_break_an_axis(values: list[float]) -> None:
    for is_log in {False, min(values) > 0}:
        axis = axis_of(values, is_log=is_log)
        assert all(0 <= axis.share(value) <= 1 for value in values)


def test_a_command_that_is_sent_round_has_no_secrets() -> None:
    words = "check train.py --api-key abc --max-tokens 5 --hf_token=x --lr 0.1 --tokenizer gpt2 hf_abcdefghijklmnopqr12 --use-secret --n 1"
    assert " ".join(without_secrets(words.split())) == (
        "check train.py --api-key … --max-tokens 5 --hf_token=… --lr 0.1 --tokenizer gpt2 … --use-secret --n 1"
    )
    words = f"--db postgres://bob:pw@db/x --chat=xoxb-1234567890 --wandb {'0a' * 20} --auth abc --pwd=zz --author me --layers 2"
    assert " ".join(without_secrets(words.split())) == (
        "--db postgres://…@db/x --chat=… --wandb … --auth … --pwd=… --author me --layers 2"
    )


def test_points_of_a_picture_are_whole() -> None:
    """A cut list of points is no picture."""
    part = SamplePart(name="", form="series", lines=(tuple(float(i % 7) for i in range(120)),))
    row = Sample(rows_of="training", output="", why=(), row=1, update=1, inputs=(part,), label="", answer="")
    sheet = Sheet(updates=1, samples=(row,))
    text = html._fill("samples.html", 2, sheet=sheet, words=sample_words, curves=curves)
    (points,) = re.findall(r'points="([^"]*)"', text)
    assert len(points.split()) == 120 and "cut" not in points
