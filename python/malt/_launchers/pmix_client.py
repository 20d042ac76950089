"""The program that speaks to PMIx: what it reads, at rank 0, it prints on every rank.

It is started with the environment of a rank, and calls libpmix. Ranks whose MPI has done that call `exchange`.
"""

import ctypes
import os
import re
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator
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
    sys.exit("libpmix.so.2, which they need to tell each other, was not found; LD_LIBRARY_PATH can name its folder")


def beside() -> Iterator[str]:
    """Find the one that a process has loaded from which this one stems: Open MPI brings its own."""
    pid = os.getppid()
    with suppress(OSError):  # of another user, as slurmstepd is
        while pid > 1:
            yield from loaded(pid)
            with open(f"/proc/{pid}/stat") as stat:
                pid = int(stat.read().rpartition(")")[2].split()[1])


def loaded(pid: int) -> set[str]:
    """Return the path of each libpmix that a process has loaded."""
    with open(f"/proc/{pid}/maps") as maps:
        return {line.split(maxsplit=5)[5].strip() for line in maps if "/libpmix.so" in line}


def exchange(pmix: ctypes.CDLL, word: Callable[[], str]) -> str:
    """Put the word, at rank 0, meet the others, and get it."""
    pmix.PMIx_Error_string.restype = ctypes.c_char_p

    def check(call: str, status: int) -> None:
        if status:
            sys.exit(f"{call} says {pmix.PMIx_Error_string(status).decode()}")

    me = Process()
    check("PMIx_Init", pmix.PMIx_Init(ctypes.byref(me), None, SIZE(0)))
    key = ctypes.create_string_buffer(KEY, 512)  # pmix_key_t
    if me.rank == 0:
        value = Value(STRING, word().encode())
        check("PMIx_Put", pmix.PMIx_Put(ctypes.c_uint8(GLOBAL), key, ctypes.byref(value)))
        check("PMIx_Commit", pmix.PMIx_Commit())
    check("PMIx_Fence", pmix.PMIx_Fence(None, SIZE(0), None, SIZE(0)))
    first, found = Process(me.nspace, 0), ctypes.POINTER(Value)()
    check("PMIx_Get", pmix.PMIx_Get(ctypes.byref(first), key, None, SIZE(0), ctypes.byref(found)))
    said: str = found.contents.string.decode()
    check("PMIx_Finalize", pmix.PMIx_Finalize(None, SIZE(0)))
    return said


def detour(rank: socket.socket) -> None:
    """Lead libpmix to the server by a connection that the rank gets, and so stays open after the goodbye.

    The server answers a goodbye, and then notes it (PMIx 5.0.9: op_cbfunc2). If it sees the connection closed
    in between, it counts one rank less, and an MPI that is initialised later waits for ever in its first fence.
    """
    ways: dict[str, str] = {}
    for name, uri in os.environ.items():
        found = re.fullmatch(r"(.+;)tcp[46]://\[?([^];]+?)\]?:([0-9]+)(;.*)?", uri)
        if name.startswith("PMIX_SERVER_URI") and found:
            server, host, port, more = found.groups(default="")
            if uri not in ways:
                listener = socket.create_server(("127.0.0.1", 0))
                ways[uri] = f"{server}tcp4://127.0.0.1:{listener.getsockname()[1]}{more}"
                threading.Thread(target=_carry, args=(listener, (host, int(port)), rank), daemon=True).start()
            os.environ[name] = ways[uri]


def _carry(listener: socket.socket, server: tuple[str, int], rank: socket.socket) -> None:
    near, _ = listener.accept()
    with near, socket.create_connection(server) as far:
        socket.send_fds(rank, [b"."], [far.fileno()])
        while True:
            for ready in select.select([near, far], [], [])[0]:
                piece = ready.recv(65536)
                if not piece:
                    return
                (far if ready is near else near).sendall(piece)


if __name__ == "__main__":
    detour(socket.socket(fileno=int(sys.argv[1])))
    print(exchange(library(), sys.stdin.read))
