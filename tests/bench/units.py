"""Values as people read them."""

from __future__ import annotations


def amount(value: float, unit: str) -> str:
    """Return a value with the unit that suits it."""
    if unit == "B":
        return f"{value / (1 << 20):.1f} MB"
    if unit == "s/B":
        return f"{value * 1e9:.3g} ns/B"
    for name, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if abs(value) * factor >= 1:
            return f"{value * factor:.3g} {name}" if value * factor < 1000 else f"{value * factor:.0f} {name}"
    return f"{value * 1e9:.0f} ns"
