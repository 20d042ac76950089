"""The demo: one model, trained serially and by several ranks, with everything timed.

``worker`` trains and judges one entry of the table, ``table`` says when an entry
reached the serial run's loss, ``picture`` draws, ``__main__`` runs them all.
"""
