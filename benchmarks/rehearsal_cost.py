"""Print what watching a script costs: processor seconds of its run with and without watchers, in turn, in forked processes.

    .venv/bin/python -m benchmarks.rehearsal_cost [--rounds N] [SCRIPT...]

Without scripts, a dozen of exam/idioms. Imports are paid before the fork. The ratio is that of the least of each: a busy
machine adds to both.
"""

import argparse
import os
import statistics
from pathlib import Path

from trainwright.rehearsal.process import Rehearsal, Server

ROOT = Path(__file__).parents[1]
MODULES = ("torch", "numpy", "transformers.trainer", "accelerate", "datasets", "lightning.pytorch", "sklearn.metrics")
USUAL = ("char_rnn", "accelerate_accumulate", "accumulate_leftover", "a2c_rollout", "checkpointing", "autoencoder_then_probe",
         "ctc_toy", "curriculum_stages", "clip_norm_slices", "dataclass_loader", "cycle_finetune", "ddpg_pointmass")  # fmt: skip
SECONDS = 120.0


def main() -> None:
    """Measure each script, and print a line for it and the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind")
    parser.add_argument("script", nargs="*", type=Path)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    scripts = options.script or [ROOT / "exam" / "idioms" / f"{name}.py" for name in USUAL]
    ratios = []
    with Server(MODULES) as server:
        for script in scripts:
            runs = [(run(server, script, False), run(server, script, True)) for _ in range(options.rounds)]
            without, watched = (min(one) for one in zip(*runs, strict=True))
            ratios.append(watched / without)
            print(f"{script.stem:32} {without:6.2f} s  {watched:6.2f} s  {ratios[-1] - 1:+.0%}", flush=True)
    print(f"median {statistics.median(ratios) - 1:+.0%}, highest {max(ratios) - 1:+.0%}")


def run(server: Server, script: Path, watched: bool) -> float:
    """The processor seconds of one run."""
    rehearsal = Rehearsal(script.name, seconds=SECONDS, folder=script.parent.resolve(), server=server, watched=watched)
    with rehearsal:
        return rehearsal.wait().processor_seconds


if __name__ == "__main__":
    main()
