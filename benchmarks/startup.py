"""How long `trainwright --help` and `import trainwright` take: seconds, median and slowest of ten, a process each.

.venv/bin/python benchmarks/startup.py
"""

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import trainwright": [sys.executable, "-c", "import trainwright"],
    "trainwright --help": [sys.executable, "-m", "trainwright", "--help"],
}
RUNS = 10


def main() -> None:
    """Print a line for each command."""
    for name, command in COMMANDS.items():
        seconds = []
        for _ in range(RUNS):
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            seconds.append(time.perf_counter() - started)
        print(f"{name:<20} {statistics.median(seconds):.3f} s median, {max(seconds):.3f} s slowest")


if __name__ == "__main__":
    main()
