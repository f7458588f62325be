"""`lm_rank.py WORDS…`: `trainwright WORDS…` in one of torchrun's processes; {rank} in a word is its number.

SEEN_WITHIN: seconds in which a run has to be seen by all. KILLED=RANK:UPDATE: the process of this rank kills itself before this update, the first time that torchrun starts it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def main(words: list[str]) -> None:
    from trainwright.cli import main as run
    from trainwright_lm import atomic
    from trainwright_lm.training import train as module

    rank, take_update = os.environ["RANK"], module.take_update

    def taken(training: Any, update: int) -> Any:
        first_time = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if first_time and os.environ.get("KILLED") == f"{rank}:{update}":
            os.kill(os.getpid(), signal.SIGKILL)
        return take_update(training, update)

    module.take_update = taken
    atomic.SEEN_WITHIN_SECONDS = float(os.environ.get("SEEN_WITHIN", atomic.SEEN_WITHIN_SECONDS))
    sys.argv[1:] = [word.replace("{rank}", rank) for word in words]
    run()


if __name__ == "__main__":
    main(sys.argv[1:])
