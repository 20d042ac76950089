"""The claims of five papers, and what this machine shows for them: ``python -m examples.evidence``.

Papers: M is MALT (EuroSys 2015), N the FAQ and source of MALT-2, P Parameter Flow, S the thesis on weakly consistent
collectives, A Sparse Allreduce. A claim that has a program is shown by ``python -m examples.evidence A2``. It prints
the paper's figure, ours, how ours was measured, and a verdict; with ``--keep`` the documentation shows it.

Ratios are of one run, with both sides in turns. Seconds of a paper are not compared with ours. *net* means hosts
that ``malt sim`` makes, *counted* that no time is in it.
"""
