"""The package of `trainwright lm` by its former name; it is `trainwright_lm` now."""

from trainwright_lm import *  # noqa: F403
