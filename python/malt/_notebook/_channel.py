"""Messages between the notebook's kernel and one rank.

A message is one packet of a socket pair that the rank inherits; no other process
can reach it. The content is a pickle in a file without a name, whose descriptor
travels with the packet. So a message of any size is received whole, and one file
serves all ranks that get the same message.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import select
import socket
from collections.abc import Iterable
from typing import Any

from malt._ranks.scratch import scratch


class Channel:
    """One end of the connection between the kernel and a rank.

    Parameters
    ----------
    connection : socket
        One of a pair of Unix sockets that keep packets apart.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a message."""
        return self._socket.fileno()

    def send(self, kind: str, content: Any = None) -> None:
        """Send a message; do nothing if the other end is gone, which others notice."""
        send([self], kind, content)

    def receive(self) -> tuple[str, Any] | None:
        """Return the next message, as its kind and content; None at the end."""
        try:
            packet, files, *_ = socket.recv_fds(self._socket, 1, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return None
        if not packet or not files:
            return None
        with (
            os.fdopen(files[0], "rb") as file,
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped,
            memoryview(mapped) as view,
        ):
            message: tuple[str, Any] = pickle.loads(view)
        return message

    def ready(self) -> bool:
        """Return whether there is a message."""
        poll = select.poll()  # select is limited to small descriptors
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close this end; the other end notices."""
        self._socket.close()


def pair() -> tuple[Channel, Channel]:
    """Return the two ends of a new connection."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Channel(ours), Channel(theirs)


def send(channels: Iterable[Channel], kind: str, content: Any = None) -> None:
    """Send one message over several connections."""
    with scratch() as file:
        pickle.dump((kind, content), file, pickle.HIGHEST_PROTOCOL)
        file.flush()
        for channel in channels:
            with contextlib.suppress(ConnectionError):
                socket.send_fds(channel._socket, [b"m"], [file.fileno()])
