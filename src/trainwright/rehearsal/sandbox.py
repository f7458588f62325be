"""Isolation by the kernel: nothing that this process writes lasts, and from a moment on nothing it sends leaves the machine.

Linux only, without privileges: namespaces of its own, in which an overlay lies over each folder that can be written. What is
read comes from below, what is written goes to a scratch folder; libraries in C, subprocesses, locks, memory maps and renames
see one consistent tree (see mount_namespaces(7), user_namespaces(7), and overlayfs in the kernel's documentation).

Where the kernel grants no namespaces, it may forbid a process to write outside some folders: Linux 5.13 and later, without
privileges, for good, and whatever writes (see landlock(7)).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import socket
import stat
import struct
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.seams.isolation.downloads import download_folders

_NEWNS, _NEWUSER, _NEWNET = 0x00020000, 0x10000000, 0x40000000
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
# Folders of the system, its processes and devices; no script keeps its results there.
_SYSTEM = {"/proc", "/sys", "/dev", "/run", "/boot", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
           "/lost+found"}  # fmt: skip
_VIRTUAL = {"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "mqueue", "securityfs", "debugfs", "tracefs",
            "bpf", "pstore", "configfs", "fusectl", "hugetlbfs", "binfmt_misc", "autofs", "rpc_pipefs"}  # fmt: skip

# Of landlock: its calls.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
# Rights of LANDLOCK_ACCESS_FS_*: write a file; remove and make each kind of entry; move between folders (version 2); truncate (3).
_WRITE_FILE, _ENTRIES, _REFER, _TRUNCATE = 1 << 1, 0b1_1111_1111 << 4, 1 << 13, 1 << 14
# What is no file of the user's; a folder that is a file system of the kernel's own has no rights to check.
_ALWAYS = (Path("/dev"), Path("/proc"))


class IsolationRefused(OSError):
    """The kernel does not grant the isolation here."""


@dataclass
class Sandbox:
    """The layers that hold what was written."""

    layers: dict[Path, int] = field(default_factory=dict)
    """By the folder that it lies over: the descriptor of the layer."""

    def list_written(self) -> list[Path]:
        """The files that the process wrote or deleted, by the paths that it used; without our own."""
        every = (path for folder, layer in self.layers.items() for path in _files(folder, layer))
        return sorted(path for path in every if not str(path).startswith(f"{tempfile.gettempdir()}/trainwright-"))


def _files(folder: Path, layer: int) -> Iterator[Path]:
    top = f"/proc/self/fd/{layer}"
    for inside, folders, files in os.walk(top):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        yield from (folder / os.path.relpath(f"{inside}/{name}", top) for name in files)


def enter_sandbox(scratch: Path, kept: Sequence[Path] = ()) -> Sandbox:
    """Isolate this process; only a process of one thread can, so before frameworks are imported.

    Args:
        scratch: an empty folder for what is written.
        kept: folders in which what is written lasts.

    Raises:
        IsolationRefused: if the kernel does not grant it; the process must then end, since it may be half isolated.
    """
    if not sys.platform.startswith("linux"):
        raise IsolationRefused("there are no namespaces outside Linux")
    if threading.active_count() > 1:
        raise IsolationRefused("a process of several threads cannot be isolated")
    here = Path.cwd()
    folders = list(_writable_folders())
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        _enter_namespaces()
        downloads = [(folder, os.open(folder, os.O_PATH)) for folder in (*download_folders(), *kept)]
        sandbox = _lay_overlays(folders, scratch)
        for folder, original in downloads:
            _mount(f"/proc/self/fd/{original}", str(folder), None, _BIND, None)
            os.close(original)
    except OSError as error:
        raise IsolationRefused(error.errno, f"isolation by the kernel: {error}") from error
    os.chdir(here)  # the same path, in the overlay now
    return sandbox


def part_files(folder: Path) -> None:
    """Open anew what this process, a fork, has open to write: in its sandbox; where it may not, nowhere.

    Args:
        folder: of its own files, which stay open.
    """
    import fcntl

    for entry in [*Path("/proc/self/fd").iterdir()]:
        with contextlib.suppress(OSError):
            number, path = int(entry.name), entry.readlink()
            mode = fcntl.fcntl(number, fcntl.F_GETFL)
            is_written = mode & os.O_ACCMODE != os.O_RDONLY and stat.S_ISREG(os.fstat(number).st_mode)
            if is_written and not path.is_relative_to(folder):
                _open_anew(number, path, mode & (os.O_ACCMODE | os.O_APPEND))


def _open_anew(number: int, path: Path, mode: int) -> None:
    at = os.lseek(number, 0, os.SEEK_CUR)
    try:
        anew = os.open(path, mode)
        os.lseek(anew, at, os.SEEK_SET)
    except OSError:
        anew = os.open(os.devnull, os.O_RDWR)
    os.dup2(anew, number, os.get_inheritable(number))
    os.close(anew)


def remove_scratch(scratch: Path) -> None:
    """Remove the folder with the layers of a process that has ended."""
    for work in scratch.glob("*/work/*"):  # the kernel's own, which nobody may read
        work.chmod(0o700)
    shutil.rmtree(scratch, ignore_errors=True)


def cut_network() -> None:
    """From now on, this thread and what it starts know no other machine.

    Raises:
        IsolationRefused: if the process is not isolated.
    """
    _check(_library().unshare(_NEWNET), "a network of its own")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        import fcntl

        flags = struct.unpack("16sh", fcntl.ioctl(probe, _GET_FLAGS, struct.pack("16sh14x", b"lo", 0))[:18])[1]
        fcntl.ioctl(probe, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise IsolationRefused(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _check(_library().mount(encoded[0], encoded[1], encoded[2], flags, encoded[3]), f"mount over {target}")


def _enter_namespaces() -> None:
    """A mount namespace; where this process may not make one, in a user namespace that maps it to itself."""
    user, group = os.getuid(), os.getgid()
    if user or _library().unshare(_NEWNS):
        _check(_library().unshare(_NEWUSER | _NEWNS), "namespaces of its own")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount("none", "/", None, _REC | _PRIVATE, None)


def _lay_overlays(folders: Sequence[Path], scratch: Path) -> Sandbox:
    """An overlay over each folder. Folders and layers are held open first: overlays may hide them."""
    held = []
    for number, folder in enumerate(folders):
        layers = [scratch / str(number) / name for name in ("upper", "work")]
        for layer in layers:
            layer.mkdir(parents=True)
        layers[0].chmod(stat.S_IMODE(folder.stat().st_mode))  # the folder's own mode shows through
        held.append([os.open(path, os.O_PATH) for path in (folder, *layers)])
    sandbox = Sandbox()
    for folder, (lower, written, work) in zip(folders, held, strict=True):
        options = f"lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{written},workdir=/proc/self/fd/{work}"
        try:
            _mount("overlay", str(folder), "overlay", 0, f"userxattr,{options}")
        except IsolationRefused:  # kernels before 5.11, whose overlays need no such option but privileges
            _mount("overlay", str(folder), "overlay", 0, options)
        os.close(work)
        os.close(lower)
        sandbox.layers[folder] = written
    return sandbox


def _writable_folders() -> Iterator[Path]:
    """The folders that a script may write to: those at the top, and what is mounted below them, from the top down."""
    mounts = [Path(mount) for mount in sorted(_mounts())]
    below = [at for at in mounts if len(at.parts) > 2 and f"/{at.parts[1]}" not in _SYSTEM and at.is_dir()]
    top = (f for f in sorted(Path("/").iterdir()) if str(f) not in _SYSTEM)
    yield from (folder for one in top for folder in _without_mounts(one, mounts))
    yield from below


def _without_mounts(folder: Path, mounts: Sequence[Path]) -> Iterator[Path]:
    """A folder; one in which something is mounted cannot lie below an overlay for an ordinary user, but its members can.

    Raises:
        IsolationRefused: if the user may write into such a folder itself.
    """
    if folder.is_symlink() or not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        return
    if not os.getuid() or not any(folder in mount.parents for mount in mounts):
        yield folder
        return
    if os.access(folder, os.W_OK):
        raise IsolationRefused(f"{folder} can be written to and holds mounts")
    for one in sorted(folder.iterdir()):
        if one not in mounts:
            yield from _without_mounts(one, mounts)


def _mounts() -> Iterator[str]:
    """Where file systems are mounted that can be written to; not the system's own, and no single files."""
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        words = line.split()
        kind = words[words.index("-") + 1]
        if kind not in _VIRTUAL:
            yield re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), words[4])


def forbid_writes(kept: Iterable[Path]) -> bool:
    """Forbid this process, and all that it starts, to change files outside some folders; returns whether the kernel does.

    Only the thread that calls it is restricted, and those that it starts.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    version = library.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return False
    rights = _WRITE_FILE | _ENTRIES | (_REFER if version > 1 else 0) | (_TRUNCATE if version > 2 else 0)
    attributes = struct.pack("Q", rights)
    rules = library.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        for folder in (*kept, *download_folders(), *_ALWAYS):
            with contextlib.suppress(FileNotFoundError):
                beneath = os.open(folder, os.O_PATH)
                library.syscall(_ADD_RULE, rules, _BENEATH, struct.pack("=Qi", rights, beneath), 0)
                os.close(beneath)
        library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return not library.syscall(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)
