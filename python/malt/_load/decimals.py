"""Decimal numbers in a text, all at once: three to five times as fast as one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Found", "decimals"]

EXACT = 15
"""Digits up to which the number without its point is a float64 exactly.

So is a power of ten up to 10**22, hence their quotient is the float64 nearest to the
decimal, as IEEE 754 divides: the same bits as from ``float``. (W. D. Clinger, How to
read floating point numbers accurately, PLDI 1990.)
"""

_PAD = b"\n" * (EXACT + 1)  # so that looking back from a digit stays within the text
_TENS = 10 ** np.arange(EXACT + 1, dtype=np.int64)

_DOT, _PLUS, _MINUS = b".+-"

Found = tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.uint8]]]


def decimals(text: bytes, separators: bytes) -> Found | None:
    r"""Read a text of plain decimals with one separator between each two.

    Parameters
    ----------
    text : bytes
        Numbers such as 7, -1 or 0.25, of no more than 15 digits. A newline may end it.
    separators : bytes
        The characters that may stand between two numbers.

    Returns
    -------
    numbers : float64 array (n,)
    before : uint8 array (n,)
        The separator before each; a newline before the first.
    None
        If there is anything else in the text, an exponent, say, or two blanks.

    Examples
    --------
    >>> numbers, before = decimals(b"1 3:0.5", b"\n :")
    >>> numbers.tolist(), bytes(before)
    ([1.0, 3.0, 0.5], b'\n :')
    """
    letters = np.frombuffer(_PAD + text, np.uint8)
    digits = letters - np.uint8(48)
    is_digit = digits < 10
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1]) + 1
    if len(edges) % 2:
        edges = np.append(edges, len(letters))
    begins, ends = edges[::2], edges[1::2]  # of runs of digits
    if not len(begins) or text[ends[-1] - len(_PAD) :] not in (b"", b"\n"):
        return None

    # What is between a run and the one before: a separator, a separator and a sign, or a point.
    gaps = begins.copy()
    gaps[1:] -= ends[:-1]
    gaps[0] -= len(_PAD) - 1
    before = letters[begins - 1]
    negative = before == _MINUS
    signed = negative | (before == _PLUS)
    if not np.array_equal(gaps, 1 + signed):
        return None
    if signed.any():
        before = np.where(signed, letters[begins - 2], before)
    fraction = before == _DOT
    known = np.zeros(256, bool)
    known[[*separators, _DOT]] = True
    if fraction[0] or not known[before].all() or (fraction & (signed | np.roll(fraction, 1))).any():
        return None

    lengths = ends - begins
    longest = int(lengths.max())
    if longest > EXACT:
        return None
    # From the last digit of each run to the first of the longest.
    whole: Any = digits[ends - 1].astype(np.int64 if longest > 9 else np.int32)
    for place in range(1, longest):
        digit = digits[ends - (1 + place)]
        digit *= lengths > place
        whole += np.multiply(digit, _TENS[place], dtype=whole.dtype)

    after = np.flatnonzero(fraction)
    numbers = whole.astype(np.float64)
    if len(after):
        places = lengths[after]
        if (lengths[after - 1] + places).max() > EXACT:
            return None
        tens = _TENS[places]
        numbers[after - 1] = (whole[after - 1] * tens + whole[after]) / tens
    if negative.any():
        np.negative(numbers, out=numbers, where=negative)
    if len(after):
        kept = ~fraction
        return numbers[kept], before[kept]
    return numbers, before
