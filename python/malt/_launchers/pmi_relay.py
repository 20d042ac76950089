"""The program that keeps a rank's place in PMI-1 once its word has been exchanged.

Its arguments are two sockets: one to the launcher, one that is PMI_FD in the rank. It answers the introduction of
an MPI that the rank initialises later, since some launchers take one only, passes on all else, and says goodbye for
a rank that ends without. An MPI that speaks PMI-2 is refused, as a launcher that has begun with PMI-1 would leave it
without an answer. It is a process, not a thread: mpi4py holds the interpreter while it initialises MPI.
"""

import os
import select
import signal
import socket
import sys
from contextlib import suppress

INIT, ANSWER = b"cmd=init ", b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n"

GOODBYE = b"cmd=finalize\n"


def main() -> None:
    """Serve until the rank has ended, or the launcher has hung up."""
    launcher, rank = (socket.socket(fileno=int(word)) for word in sys.argv[1:])
    if os.fork():  # the rank has no child that it knows nothing of
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of the rank is what counts
    said = b""
    with suppress(OSError):
        while True:
            for ready in select.select([launcher, rank], [], [])[0]:
                piece = ready.recv(4096)
                if ready is launcher:
                    if not piece:
                        return
                    rank.sendall(piece)
                elif not piece:
                    launcher.sendall(GOODBYE)
                    while launcher.recv(4096)[-1:] not in (b"\n", b""):
                        pass
                    return
                said += piece if ready is rank else b""
                while said.endswith(b"\n"):  # Slurm takes what it reads at once for a whole
                    if said.startswith(INIT):
                        introduction, _, said = said.partition(b"\n")
                        known = introduction.startswith(INIT + b"pmi_version=1 ")
                        rank.sendall(ANSWER % (not known))
                        if not known:
                            rank.shutdown(socket.SHUT_RDWR)  # some go on after a refusal
                    else:
                        launcher.sendall(said)
                        said = b""


if __name__ == "__main__":
    main()
