"""Libraries that do nothing in place of CUDA's, so that a CUDA build of torch can be imported where there is no CUDA.

Some registries have older torch, and torch for newer Pythons, as CUDA builds only, whose own libraries are several
gigabytes. Each library that torch asks for and nothing provides is written beside torch's: it has the functions that are
asked for, and each of them says that there is no device (cudaErrorNoDevice, 100). Needs binutils and gcc.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

_CUDAS = re.compile(r"nccl|curand|nvtx|nvshmem|cu[A-Zsbf]")


def write_stubs(site_packages: Path) -> list[str]:
    """Write what is missing beside torch's libraries; the names of these files."""
    folder = site_packages / "torch" / "lib"
    if not folder.is_dir():
        return []
    files = sorted(folder.glob("*.so*"))
    needed = {n for f in files for n in re.findall(r"\(NEEDED\).*\[(.+?)\]", _told("readelf", "-dW", f))}
    on_system = _told("ldconfig", "-p")
    missing = [n for n in sorted(needed) if not (folder / n).exists() and f"\t{n} " not in on_system]
    if missing:
        versions, wanted = _versions(files), _wanted(files)
        for name in missing:
            _write(folder / name, [v for v, file in versions.items() if file == name], wanted)
    return missing


def _versions(files: list[Path]) -> dict[str, str]:
    """The library that each version of a symbol belongs to."""
    owners: dict[str, str] = {}
    for file in files:
        library = ""
        for line in _told("readelf", "-VW", file).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            elif library and (found := re.search(r"Name: (\S+)", line)):
                owners[found[1]] = library
    return owners


def _wanted(files: list[Path]) -> dict[str, set[str]]:
    """The C functions that are asked for by their version, "" where they have none."""
    wanted: dict[str, set[str]] = defaultdict(set)
    defined: set[str] = set()
    for file in files:
        for line in _told("readelf", "--dyn-syms", "-W", file).splitlines():
            parts = line.split()
            if len(parts) < 8 or parts[7].startswith("_Z"):
                continue
            name, _, version = parts[7].partition("@")
            if parts[6] != "UND":
                defined.add(name)
            elif parts[4] == "GLOBAL":
                wanted[version].add(name)
    wanted[""] = {n for n in wanted[""] - defined if _CUDAS.match(n)}
    return wanted


def _write(file: Path, versions: list[str], wanted: dict[str, set[str]]) -> None:
    functions = sorted({f for v in versions or [""] for f in wanted[v]})
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder) / "stub.c", Path(folder) / "versions"
        source.write_text("".join(f"int {f}(void) {{ return 100; }}\n" for f in functions))
        exported = (f"{v} {{ global: {''.join(f'{f}; ' for f in sorted(wanted[v]))}}};\n" for v in versions)
        script.write_text("".join(exported))
        by_version = [f"-Wl,--version-script={script}"] if versions else []
        _told("gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", file, source, f"-Wl,-soname,{file.name}", *by_version)  # fmt: skip


def _told(*command: str | Path) -> str:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout
