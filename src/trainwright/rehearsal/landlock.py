"""Where the kernel grants no namespaces, it may forbid a process to write outside some folders: Linux 5.13 and later, without
privileges, for good, and whatever writes (see landlock(7))."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

from trainwright.seams.isolation.downloads import download_folders

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
# Rights of LANDLOCK_ACCESS_FS_*: write a file; remove and make each kind of entry; move between folders (version 2); truncate (3).
_WRITE_FILE, _ENTRIES, _REFER, _TRUNCATE = 1 << 1, 0b1_1111_1111 << 4, 1 << 13, 1 << 14
# What is no file of the user's; a folder that is a file system of the kernel's own has no rights to check.
_ALWAYS = (Path("/dev"), Path("/proc"))


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
