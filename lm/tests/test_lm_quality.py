"""Cuts in lines of code, the scores of completions, and their intervals."""

import keyword
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_evaluating import HELD_OUT
from trainwright_lm.evaluation.cuts import Cut, code_lines, find_cuts, library_names, read_statements
from trainwright_lm.evaluation.quality import (
    METRICS,
    edit_similarity,
    exact_match,
    identifier_match,
    identifiers,
    intervals,
    measure_quality,
    score,
)

LIBRARIES = ("pandas", "sklearn", "matplotlib", "seaborn", "numpy")


def cuts_of(*texts: str, random: int = 0, call: int = 0, seed: int = 0, libraries=LIBRARIES) -> list[Cut]:
    counts = {kind: count for kind, count in (("random", random), ("call", call)) if count}
    found = find_cuts(enumerate(texts), counts=counts, libraries=libraries, seed=seed)
    return [cut for kind in counts for cut in found[kind]]


def cut_at(typed: str, rest: str, document: int = 0) -> Cut:
    return Cut(document=document, text=f"x = 1\n{typed}{rest}  \ny = 2\n", position=6 + len(typed))


CODE = ["x = 1", 'grüße = "größe – 价格 🎉"', "def f(a, b):", "return a(b)[0]", "z = f'{x!r} ü'", "@wraps(f)", "pass"]
NO_CODE = [
    "# a comment",
    "",
    "   ",
    '"""One line."""',
    "'text'",
    "x = 1  # said",
    '"""Two\nlines."""',
    'y = """Two\nlines."""',
]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([*CODE, *NO_CODE]), max_size=12), st.sampled_from(["\n", "\r\n"]), st.integers(0, 9))
def test_cuts_lie_within_the_code_of_lines_that_are_code_alone(parts, newline, seed) -> None:
    text = "".join(part + newline for part in parts)
    for cut in cuts_of(text, random=50, seed=seed):
        line = cut.typed + cut.rest
        assert line in CODE and cut.rest and cut.typed
        assert cut.before + text[cut.position :] == text
        assert cut.before.encode().decode() == cut.before  # never within a character's bytes


def test_every_line_of_code_can_be_cut_and_every_place_in_it() -> None:
    places = {cut.position for seed in range(200) for cut in cuts_of("ab + cd\n", random=1, seed=seed)}
    assert places == set(range(1, 7))
    lines = {
        cut.typed + cut.rest for seed in range(50) for cut in cuts_of("a = 1\nb = 2\nc = 3\n", random=1, seed=seed)
    }
    assert lines == {"a = 1", "b = 2", "c = 3"}


def test_lines_with_a_part_of_a_longer_string_are_left_out_and_their_neighbours_are_not() -> None:
    text = 'a = f"""{x}\nrest"""\nb = [\n    "one",\n    two,\n]\n'
    lines = code_lines(text, read_statements(text))
    assert [text[line[0].start : line[-1].end] for line in lines] == ["b = [", '"one",', "two,", "]"]


@pytest.mark.parametrize("broken", ["x = (1\n", "  x = '\n", "if x:\ny\n", "a\0b\n", "x = $\n", "?\n"])
def test_a_document_that_python_cannot_read_is_read_up_to_there(broken) -> None:
    lines = {cut.typed + cut.rest for cut in cuts_of(f"first = 1\n{broken}", random=9)}
    assert "first = 1" in lines


def test_a_document_whose_lines_end_in_two_ways_is_passed_over() -> None:
    assert cuts_of("a = 1\rb = 2\n", random=9) == []


def test_calls_of_libraries_are_found_by_the_names_that_imports_give_them() -> None:
    text = """import pandas as p, numpy
from matplotlib import (pyplot as draw, colors)
from sklearn.linear_model import LinearRegression
a = p.concat([numpy.zeros(3), numpy.nan])
draw.scatter(x, y)  # a comment bars the line
draw.scatter(x, y)
colors.Normalize(x,
    y)
LinearRegression.from_file(f)
other.p.read()
model.fit(a)
model.fit()
ax.plot(1)
plt.plot(1)
def fit(self): p
df.head(2)
"""
    found = sorted((cut.position, cut.prompt_end, cut.rest, cut.library) for cut in cuts_of(text, call=99))
    assert [one[1:] for one in found] == [
        ("p.", "concat([numpy.zeros(3), numpy.nan])", "pandas"),
        ("numpy.", "zeros(3), numpy.nan])", "numpy"),
        ("draw.", "scatter(x, y)", "matplotlib"),
        ("colors.", "Normalize(x,", "matplotlib"),
        ("LinearRegression.", "from_file(f)", "sklearn"),
        (".fit(", "a)", "sklearn"),
        (".fit(", ")", "sklearn"),
        ("ax.", "plot(1)", "matplotlib"),
        ("df.", "head(2)", "pandas"),
    ]


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("import numpy", {"numpy": "numpy"}),
        ("import matplotlib.pyplot", {"matplotlib": "matplotlib"}),
        ("import os, pandas as pd, sys", {"pd": "pandas"}),
        ("import matplotlib.pyplot as plt", {"plt": "matplotlib"}),
        ("from sklearn import svm, tree as t", {"svm": "sklearn", "t": "sklearn"}),
        ("from pandas.api import (types,\n  extensions as e,)", {"types": "pandas", "e": "pandas"}),
        ("from . import pandas", {}),
        ("from mypackage import pandas", {}),
        ("if x: import pandas as pd", {}),
        ("importer = pandas", {}),
    ],
)
def test_imports_bind_names(statement, names) -> None:
    assert library_names(read_statements(f"{statement}\n"), LIBRARIES) == names


def test_customary_names_and_methods_count_only_where_their_library_is_imported() -> None:
    lines = "df.head(2)\nmodel.fit(df)\nax.plot(1)\n"
    assert cuts_of(f"import os\n{lines}", call=9) == []
    assert [cut.prompt_end for cut in cuts_of(f"import pandas\n{lines}", call=9)] == ["df."]
    assert [cut.prompt_end for cut in cuts_of(f"import sklearn\n{lines}", call=9)] == [".fit("]


def test_libraries_and_documents_take_turns() -> None:
    calls = "".join(f"np.f{i}(x)\n" for i in range(20))
    texts = [f"import numpy as np\n{calls}", "import numpy as np\nnp.g(x)\n", "import pandas as pd\npd.h(x)\n"]
    cuts = cuts_of(*texts, call=4)
    assert Counter(cut.document for cut in cuts) == {0: 2, 1: 1, 2: 1}
    assert len(cuts_of(*texts, call=99)) == 22
    assert [cut.document for cut in cuts] == sorted(cut.document for cut in cuts)


def test_the_seed_decides_the_cuts() -> None:
    positions = [[cut.position for cut in cuts_of(*HELD_OUT, random=9, seed=seed)] for seed in (0, 0, 1)]
    assert positions[0] == positions[1] != positions[2]


def test_a_document_s_cuts_do_not_depend_on_the_others() -> None:
    alone = cuts_of(HELD_OUT[0], random=99)
    together = cuts_of(*HELD_OUT, random=99)
    assert [c.position for c in together if c.document == 0] == [c.position for c in alone]


CUTS = cuts_of(*HELD_OUT, random=20, call=20)


def test_who_knows_the_line_scores_one_and_who_says_nothing_none() -> None:
    assert len(CUTS) > 20
    knows, silent = score([f"{cut.rest} \nmore" for cut in CUTS], CUTS), score([""] * len(CUTS), CUTS)
    assert np.nanmin(knows) == 1.0 and np.nanmax(silent) == 0.0
    for scores, mean in ((knows, 1.0), (silent, 0.0)):
        for interval in intervals(scores, CUTS).values():
            assert (interval.mean, interval.low, interval.high) == (mean, mean, mean)


def test_space_at_the_end_of_a_line_is_no_difference_but_at_its_beginning_is() -> None:
    cut = cut_at("x = f(", "a, b)")
    assert exact_match("a, b)  ", cut) == exact_match("a, b)\r\nnext", cut) == 1.0
    assert exact_match(" a, b)", cut) == exact_match("\na, b)", cut) == exact_match("a,b)", cut) == 0.0


def slow_similarity(one: str, other: str) -> float:
    """1 - insertions and deletions / both lengths, by the table of the longest common subsequence."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return 2 * table[-1][-1] / (len(one) + len(other))


@given(st.text("ab( ü", max_size=12), st.text("ab(ü", min_size=1, max_size=12))
def test_edit_similarity_is_that_of_a_slow_table(completion, rest) -> None:
    assert edit_similarity(completion, cut_at("x", rest)) == pytest.approx(slow_similarity(completion.rstrip(), rest))


@pytest.mark.parametrize(
    ("typed", "rest", "names"),
    [
        ("plt.sc", "atter(x, y)", ["scatter", "x", "y"]),  # the name that is cut in two counts as a whole
        ("plt", ".plot(x)", ["plot", "x"]),  # the one before the cut is no merit
        ('print("he', 'llo", name)', ["name"]),
        ("print('a", "", []),
        ("for i ", "in x if not y else None:", ["x", "y"]),
        ("n = 1", "e5 + 0x1F + v2", ["v2"]),
        ("s = r'\\", "' + s2", []),
        ("größ", "e = f(b'x', f'{y}', rb\"z\")", ["größe", "f"]),
    ],
)
def test_identifiers_of_a_completion(typed, rest, names) -> None:
    assert identifiers(typed, rest) == names


NAMES = st.lists(st.sampled_from(["a", "bc", "if", "d"]), max_size=6).map(" + ".join)


@given(NAMES, NAMES)
def test_identifier_match_is_the_f1_of_names_as_often_as_they_stand_there(given, wanted) -> None:
    names = [[n for n in re.findall(r"\w+", text) if not keyword.iskeyword(n)] for text in (given, wanted)]
    matched = sum(min(names[0].count(n), names[1].count(n)) for n in set(names[1]))
    found = identifier_match(given, cut_at("x = ", wanted))
    if not names[1]:
        assert np.isnan(found)
    elif not matched:
        assert found == 0
    else:
        precision, recall = matched / len(names[0]), matched / len(names[1])
        assert found == pytest.approx(2 * precision * recall / (precision + recall))


SCORES = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.25, 1.0, float("nan")])), min_size=1, max_size=40
)


def tables_of(scores: list[tuple[int, float]]) -> tuple[np.ndarray, list[Cut]]:
    table = np.repeat(np.array([value for _, value in scores])[:, None], len(METRICS), axis=1)
    return table, [cut_at("x", "y", document) for document, _ in scores]


@given(SCORES, st.integers(0, 3))
def test_an_interval_holds_the_mean_and_depends_on_its_seed_alone(scores, seed) -> None:
    table, cuts = tables_of(scores)
    found = intervals(table, cuts, seed=seed)["exact_match"]
    values = [value for _, value in scores if value == value]
    assert repr(found) == repr(intervals(table, cuts, seed=seed)["exact_match"])
    if values:
        assert found.mean == pytest.approx(sum(values) / len(values))
        assert 0 <= found.low <= found.mean <= found.high <= 1
    else:
        assert np.isnan(found.mean) and (found.low, found.high) == (0, 1)


def test_an_interval_over_many_documents_is_that_of_the_normal_approximation() -> None:
    values = np.random.default_rng(0).random(400)
    found = intervals(*tables_of(list(enumerate(values))))["exact_match"]
    half = 1.96 * values.std() / 20
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=half / 8)


def test_more_lines_of_the_same_documents_make_no_interval_narrower() -> None:
    once = [(document, document % 3 / 2) for document in range(30)]
    assert intervals(*tables_of(once)) == intervals(*tables_of(once * 10))


def test_a_single_document_says_nothing_of_others() -> None:
    found = intervals(*tables_of([(7, 1.0), (7, 1.0)]))["edit_similarity"]
    assert (found.mean, found.low, found.high) == (1.0, 0.0, 1.0)


def test_a_difference_is_taken_on_the_same_cuts() -> None:
    table, cuts = tables_of([(document, document % 2) for document in range(50)])
    assert intervals(table, cuts)["exact_match"].low < 0.4
    same, ahead = (
        intervals(table, cuts, others=table)["exact_match"],
        intervals(table + 0.25, cuts, others=table)["exact_match"],
    )
    assert (same.mean, same.low, same.high) == (0, 0, 0)
    assert (ahead.low, ahead.high) == pytest.approx((0.25, 0.25))


def test_quality_compares_the_first_completer_with_the_others() -> None:
    completers = {"knows": lambda cut: cut.rest, "silent": lambda cut: ""}
    found = measure_quality(CUTS, completers, examples=5)
    assert found.scores["knows"]["exact_match"].mean == found.ahead["silent"]["exact_match"].mean == 1.0
    assert found.cuts == len(CUTS) and found.documents == 2
    assert found.libraries["matplotlib"]["knows"] == 1.0 and found.libraries["sklearn"]["silent"] == 0.0
    assert len(found.examples) == 5
    assert all(example.completion == example.rest for example in found.examples)
