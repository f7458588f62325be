"""The tests of the language model run under the conditions of all others (tests/helpers)."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS.parents[1] / "tests" / "helpers")]
import conditions  # noqa: E402, F401
