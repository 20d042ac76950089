# The public names: type checkers read here what they are, and the package at run time where they are.

from . import dask as dask
from . import ray as ray
from . import sklearn as sklearn
from . import torch as torch
from . import typing as typing
from ._c import get_include as get_include
from ._c import get_library as get_library
from ._data.deal import deal as deal
from ._data.dealing import Deal as Deal
from ._data.load import load as load
from ._data.shard import shard as shard
from ._errors import DeathWarning as DeathWarning
from ._errors import Error as Error
from ._errors import ExpelledError as ExpelledError
from ._errors import HostError as HostError
from ._errors import MismatchError as MismatchError
from ._errors import OutOfMemoryError as OutOfMemoryError
from ._errors import PackageError as PackageError
from ._errors import PeerError as PeerError
from ._errors import StaleError as StaleError
from ._errors import StateError as StateError
from ._errors import TimeoutError as TimeoutError
from ._errors import UnsupportedError as UnsupportedError
from ._job.world import alive as alive
from ._job.world import allgather as allgather
from ._job.world import allreduce as allreduce
from ._job.world import barrier as barrier
from ._job.world import broadcast as broadcast
from ._job.world import confirm as confirm
from ._job.world import expel as expel
from ._job.world import first as first
from ._job.world import generation as generation
from ._job.world import init as init
from ._job.world import local_rank as local_rank
from ._job.world import rank as rank
from ._job.world import size as size
from ._ranks.run import run as run
from ._vectors.folds import Update as Update
from ._vectors.graph import Graph as Graph
from ._vectors.segment import Message as Message
from ._vectors.segment import Segment as Segment
from ._vectors.statistics import Edge as Edge
from ._vectors.statistics import Stats as Stats
from ._vectors.vector import Vector as Vector

__version__: str
