"""What a file's earlier text adds to the network's probabilities."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_runs import model, tokenizer
from trainwright_lm.completion import complete as recalling
from trainwright_lm.completion.complete import MOST_TAKEN_BACK, WEIGHTS, Completer, Recall
from trainwright_lm.completion.endings import line_end

TOKENS = st.lists(st.integers(0, 3), max_size=40)


def recalled(ids: Sequence[int]) -> Recall:
    """The recall of a prompt with these tokens."""
    made = Recall(tokenizer(), "")
    made._ids = torch.tensor(ids, dtype=torch.long).numpy()
    return made


def slowly_mixed(probabilities: list[float], ids: list[int], last: list[int]) -> list[float]:
    """The module's formula, length by length, over all places."""
    for length, weight in enumerate(WEIGHTS, start=1):
        places = [i for i in range(length, len(ids)) if length <= len(last) and ids[i - length : i] == last[-length:]]
        if not places:
            break
        followers = [ids[i] for i in places]
        probabilities = [
            (1 - weight) * p + weight * followers.count(token) / len(followers) for token, p in enumerate(probabilities)
        ]
    return probabilities


@settings(max_examples=200, deadline=None)
@given(TOKENS, TOKENS)
def test_the_mixture_is_that_of_the_formula(ids, last) -> None:
    torch.manual_seed(0)
    logits = torch.randn(4)
    mixed = recalled(ids).mixed(logits, last).exp()
    assert mixed.tolist() == pytest.approx(slowly_mixed(logits.softmax(-1).tolist(), ids, last), abs=1e-5)
    assert float(mixed.sum()) == pytest.approx(1, abs=1e-5)


def test_where_the_file_says_nothing_the_network_alone_speaks() -> None:
    logits = torch.randn(4)
    for recall in (recalled([]), recalled([2]), recalled([0, 1, 0, 1])):
        torch.testing.assert_close(recall.mixed(logits, [3, 2]), logits.log_softmax(-1))


def test_a_token_that_the_network_excludes_stays_excluded_unless_the_file_has_it() -> None:
    mixed = recalled([0, 1]).mixed(torch.tensor([0.0, -torch.inf, -torch.inf, 0.0]), [0]).exp()
    assert mixed.tolist() == pytest.approx([0.45, 0.1, 0.0, 0.45])


def test_an_untrained_network_repeats_what_the_file_says_over_and_over() -> None:
    known = "frame.groupby('key').mean()\n" * 6
    net = model("modern", vocabulary_size=tokenizer().vocabulary_size)
    prompt = known + "frame.gro"

    def completed(recalls: bool) -> str:
        return Completer(net, tokenizer(), recalls=recalls).complete(prompt, limit=40, ending=line_end)

    assert completed(True) == "upby('key').mean()"
    assert completed(False) != completed(True)


def test_the_prompt_s_own_end_and_what_lies_too_far_above_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a = 1\nb = 2\n" * 9
    ids = tokenizer().encode(text)
    assert Recall(tokenizer(), text)._ids.tolist() == ids[:-MOST_TAKEN_BACK]
    monkeypatch.setattr(recalling, "FAR_CHARACTERS", 20)
    assert Recall(tokenizer(), text)._ids.tolist() == tokenizer().encode("b = 2\na = 1\nb = 2\n")[:-MOST_TAKEN_BACK]
    assert Recall(tokenizer(), "x" * 99)._ids.tolist() == tokenizer().encode("x" * 20)[:-MOST_TAKEN_BACK]
