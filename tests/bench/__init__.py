"""How fast MALT is, beside what this machine can do and beside what people would use instead.

`rows` says what is measured and what is asked of it, `systems` who takes part, `turns`
how they are started and take turns, `numbers` and `verdict` what comes out, `table` and `plots` how it
is shown. What the processes do is in `ranks`, which needs numpy alone, since each
system has a virtual environment of its own.
"""
