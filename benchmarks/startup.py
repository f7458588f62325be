"""What our own start costs: `--help`, `import trainwright`, and a check of a ten-line torch script beside the script itself.

.venv/bin/python benchmarks/startup.py

CPU-seconds (user and system) of processes of their own, the best of some repetitions: other work on the machine can only
add to them. The check checks some sixty training steps more than the script takes, so the difference holds the check too.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

REPETITIONS = 5
GOAL_SECONDS = 1.5
SCRIPT = """\
import torch
from torch import nn
x = torch.randn(256, 8)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), batch_size=32)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for inputs, labels in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
"""


def main() -> None:
    """Print a line for each command, and how much a check takes beyond the script."""
    python = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT, encoding="utf-8")
        commands = {
            "python -c pass": [python, "-c", "pass"],
            "import trainwright": [python, "-c", "import trainwright"],
            "trainwright --help": [python, "-m", "trainwright", "--help"],
            "python train.py": [python, str(script)],
            "trainwright check train.py": [python, "-m", "trainwright", "check", str(script)],
        }
        best = {name: min(cpu_seconds(command) for _ in range(REPETITIONS)) for name, command in commands.items()}
    for name, seconds in best.items():
        print(f"{name:<28} {seconds:.2f} CPU-seconds")
    more = best["trainwright check train.py"] - best["python train.py"]
    print(f"{'a check beyond the script':<28} {more:.2f} CPU-seconds (goal {GOAL_SECONDS})")


def cpu_seconds(command: Sequence[str]) -> float:
    """What a process and those that it starts take of the processors, in user and system mode.

    Raises:
        subprocess.CalledProcessError: if it fails.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users have compiled modules from the second start on
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
