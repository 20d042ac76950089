"""The C library: the only folder that knows cffi.

Everything else in the package calls the functions and classes named here, which
turn statuses into exceptions and C memory into numpy arrays.

loading   when the library is loaded, and what becomes of it in forked children
convert   statuses, texts and structs
waiting   waits, and who may make one
job       joining, leaving, collective calls
stacks    what `malt stack` reads
memory    mapped memory under arrays
objects   vectors and segments
graphs    dataflow graphs; what the library knows about this machine
"""

from .convert import DTYPES
from .graphs import graph_measures, graph_receivers, graph_text, inspect, version
from .job import (
    abort,
    allgather,
    allreduce,
    barrier,
    broadcast,
    confirm,
    expel,
    generation,
    init,
    living,
    log,
    mark,
    who,
    witness,
)
from .loading import alive, forked
from .memory import Counters, Memory, book_all, book_with, counters
from .objects import Object, Update, check_vector, drop_unfinished, new_segment, new_vector, quicken
from .place import tell
from .waiting import DEFAULT_TIMEOUT, JOB, MAY_OVERFLOW, seconds, warn
