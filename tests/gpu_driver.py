"""A stand-in for NVIDIA's driver on machines without one: a program nvidia-smi that lists one GPU of 80 GiB."""

import os
import tempfile
from pathlib import Path

TOTAL_MIB = 81920
_PROGRAM = """#!/bin/sh
case "$1" in
  --query-gpu=index,uuid,memory.total,name)
    echo "0, GPU-aa, {total}, NVIDIA H100 80GB HBM3"; echo "1, GPU-bb, {total}, NVIDIA H100 80GB HBM3";;
  --query-compute-apps=gpu_uuid,pid,used_memory,process_name) printf "%b" "{processes}";;
esac
exit {status}
"""


def nvidia_smi(
    folder: Path, *processes: tuple[str, int, object, str], status: int = 0, first: str = ""
) -> None:
    """Write the program, for processes of uuid, pid, MiB and name."""
    told = "".join(f"{uuid}, {pid}, {held}, {name}\\n" for uuid, pid, held, name in processes)
    program = folder / "nvidia-smi"
    text = _PROGRAM.format(total=TOTAL_MIB, processes=told, status=status)
    program.write_text(text.replace("#!/bin/sh\n", f"#!/bin/sh\n{first}\n"), encoding="utf-8")
    program.chmod(0o755)


def another_process_holds(mib: int) -> None:
    """From here on, and for this process alone: its parent holds so much of GPU 0."""
    folder = Path(tempfile.mkdtemp())
    nvidia_smi(
        folder, ("GPU-aa", os.getppid(), mib, "/opt/conda/bin/python"), ("GPU-aa", os.getpid(), 500, "python")
    )
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", "")])
