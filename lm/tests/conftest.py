"""The tests of the language model have helpers of their own."""

import sys
from pathlib import Path

import pytest

from trainwright_lm.tokens.prepared import PreparedData, open_data
from trainwright_lm.training.live import Live

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from lm_material import write_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    """As `prepare` makes them, small."""
    return open_data(write_data(tmp_path_factory.mktemp("data")))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the line of the training says."""
    said: list[str] = []
    monkeypatch.setattr(Live, "say", lambda self, text: said.append(text))
    return said
