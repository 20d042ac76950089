"""The store of torchrun's agent, reached with PyTorch."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

from .channel import ChannelError

_PAUSE = 0.02
"""Seconds between two looks into the store."""


def share(env: Mapping[str, str], rank: int, size: int, word: str, seconds: float) -> str:
    """Return rank 0's word on every rank; see `channel.Share`.

    The store outlives the ranks, which torchrun restarts, so what lies there may be
    from before. Hence each rank notes a number that it has just drawn, beside that of
    the word which it has read, and takes the word when rank 0, which is then alive
    and has said it, repeats the rank's number.
    """
    until = time.monotonic() + seconds
    store = _store(env, seconds)
    try:
        if rank == 0:
            _say(store, size, word, until)
            return word
        return _hear(store, rank, until)
    except RuntimeError as error:  # of the network: PyTorch's own are all below it
        raise ChannelError(f"the store of torchrun's agent at {_where(env)} fails: {error}") from None


def _where(env: Mapping[str, str]) -> str:
    return f"{env.get('MASTER_ADDR')}:{env.get('MASTER_PORT')}"


def _store(env: Mapping[str, str], seconds: float) -> Any:
    try:
        torch: Any = import_module("torch.distributed")
    except ImportError:
        raise ChannelError("PyTorch, which would tell them where to meet, cannot be imported by this Python") from None
    try:
        address, port = env["MASTER_ADDR"], int(env["MASTER_PORT"])
        return torch.TCPStore(
            address, port, is_master=False, timeout=timedelta(seconds=seconds), wait_for_workers=False
        )
    except (KeyError, ValueError, RuntimeError) as error:
        raise ChannelError(f"torchrun's agent cannot be reached at {_where(env)}: {error}") from None


def _say(store: Any, size: int, word: str, until: float) -> None:
    """Leave the word, and confirm it to each of the others."""
    drawn = os.urandom(8).hex()
    store.set("malt/word", f"{drawn} {word}")
    left = set(range(1, size))
    while left:
        for rank in sorted(left):
            read, _, number = _get(store, f"malt/read/{rank}").partition(" ")
            if read == drawn:
                store.set(f"malt/meant/{rank}", number)
                left.remove(rank)
        if left and time.monotonic() > until:
            raise ChannelError(f"rank {', '.join(map(str, sorted(left)))} did not reach the store of torchrun's agent")
        time.sleep(_PAUSE * bool(left))


def _hear(store: Any, rank: int, until: float) -> str:
    """Return the word once rank 0 has confirmed it."""
    number, read = os.urandom(8).hex(), ""
    while True:
        drawn, _, word = _get(store, "malt/word").partition(" ")
        if drawn and drawn != read:
            store.set(f"malt/read/{rank}", f"{drawn} {number}")
            read = drawn
        if _get(store, f"malt/meant/{rank}") == number:
            return word
        if time.monotonic() > until:
            raise ChannelError("rank 0 did not reach the store of torchrun's agent")
        time.sleep(_PAUSE)


def _get(store: Any, key: str) -> str:
    return str(store.get(key).decode()) if store.check([key]) else ""
