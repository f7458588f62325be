"""The process of a rehearsal: isolates itself, runs the script, and writes the record.

    python -m trainwright.rehearsal.child REQUEST

It is isolated before anything else is imported: only a process of one thread can be.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trainwright.rehearsal.request import KERNEL, REFUSED, Request
from trainwright.rehearsal.sandbox import Refused, Sandbox, enter_sandbox


def main(file: str) -> None:
    """Do what the request says."""
    request = Request.read(Path(file))
    record = request.record.open("wb")
    progress = os.open(request.progress, os.O_RDWR | os.O_CREAT)
    sandbox: Sandbox | None = None
    if request.isolation == KERNEL:
        try:
            sandbox = enter_sandbox(request.scratch)
        except Refused as error:
            print(f"trainwright: {error}", file=sys.stderr)
            sys.exit(REFUSED)
    from trainwright.rehearsal.run import run_script

    run_script(request, sandbox, record, progress)
    os._exit(0)  # past the script's threads, workers and handlers


if __name__ == "__main__":
    main(sys.argv[1])
