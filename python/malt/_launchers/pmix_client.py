"""The program that speaks to PMIx: what it reads, at rank 0, it prints on every rank.

It is started with the environment of a rank, and calls libpmix.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

KEY = b"malt"

SIZE = ctypes.c_size_t

GLOBAL, STRING = 3, 3  # pmix_common.h: PMIX_GLOBAL, PMIX_STRING


class Process(ctypes.Structure):
    """pmix_proc_t."""

    _fields_ = (("nspace", ctypes.c_char * 256), ("rank", ctypes.c_uint32))


class Value(ctypes.Structure):
    """pmix_value_t of a string: of a union that is larger."""

    _fields_ = (("type", ctypes.c_uint16), ("string", ctypes.c_char_p), ("rest", ctypes.c_char * 48))


def library() -> ctypes.CDLL:
    """Return libpmix: the launcher's own, or one that the system finds."""
    for path in (*beside(), "libpmix.so.2"):
        with suppress(OSError):
            return ctypes.CDLL(path)
    sys.exit("libpmix.so.2, by which they would tell each other, is not found; LD_LIBRARY_PATH can name its folder")


def beside() -> Iterator[str]:
    """Find the one that a process has loaded from which this one stems: Open MPI brings its own."""
    pid = os.getppid()
    with suppress(OSError):  # of another user, as slurmstepd is
        while pid > 1:
            with open(f"/proc/{pid}/maps") as maps:
                yield from {line.split(maxsplit=5)[5].strip() for line in maps if "/libpmix.so" in line}
            with open(f"/proc/{pid}/stat") as stat:
                pid = int(stat.read().rpartition(")")[2].split()[1])


def main() -> None:
    """Put, meet the others, get."""
    pmix = library()
    pmix.PMIx_Error_string.restype = ctypes.c_char_p

    def check(call: str, status: int) -> None:
        if status:
            sys.exit(f"{call} says {pmix.PMIx_Error_string(status).decode()}")

    me = Process()
    check("PMIx_Init", pmix.PMIx_Init(ctypes.byref(me), None, SIZE(0)))
    key = ctypes.create_string_buffer(KEY, 512)  # pmix_key_t
    if me.rank == 0:
        value = Value(STRING, sys.stdin.read().encode())
        check("PMIx_Put", pmix.PMIx_Put(ctypes.c_uint8(GLOBAL), key, ctypes.byref(value)))
        check("PMIx_Commit", pmix.PMIx_Commit())
    check("PMIx_Fence", pmix.PMIx_Fence(None, SIZE(0), None, SIZE(0)))
    first, found = Process(me.nspace, 0), ctypes.POINTER(Value)()
    check("PMIx_Get", pmix.PMIx_Get(ctypes.byref(first), key, None, SIZE(0), ctypes.byref(found)))
    print(found.contents.string.decode())
    check("PMIx_Finalize", pmix.PMIx_Finalize(None, SIZE(0)))


if __name__ == "__main__":
    main()
