"""Real training loops before MALT; those with it have the same names, one folder up.

``python -m serial`` in ``examples`` shows what has changed.
"""
