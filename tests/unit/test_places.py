"""Whose a line of code is: the language model's is ours, like the debugger's, until it is what is checked."""

from pathlib import Path

import pytest

import trainwright
import trainwright_lm
from trainwright.seams.source.places import checking_module, is_ours, is_users

DEBUGGER, LANGUAGE_MODEL = trainwright.__file__, trainwright_lm.__file__


@pytest.mark.parametrize("module", ["", "torch.distributed.run", "hypothesis"])
@pytest.mark.parametrize("file", [DEBUGGER, LANGUAGE_MODEL])
def test_both_packages_are_ours(file: str, module: str) -> None:
    with checking_module(module):
        assert is_ours(file) and not is_users(file)


@pytest.mark.parametrize("module", ["trainwright", "trainwright_lm.cli"])
def test_a_language_model_that_is_checked_is_the_users(module: str) -> None:
    """`trainwright check -m trainwright lm train data --out run`."""
    with checking_module(module):
        assert is_users(LANGUAGE_MODEL) and not is_ours(LANGUAGE_MODEL)
        assert is_ours(DEBUGGER) and not is_users(DEBUGGER)


def test_a_folder_whose_name_begins_with_ours_is_not_ours() -> None:
    assert not is_ours(f"{Path(DEBUGGER).parent}_experiments/train.py")


def test_a_metric_that_a_library_copied_into_its_cache_is_not_the_users() -> None:
    assert not is_users("/home/me/.cache/huggingface/modules/evaluate_modules/metrics/f1/0a1b/f1.py")
    assert is_users("/home/me/f1/f1.py")
