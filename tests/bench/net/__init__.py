"""The rows of `make bench-net`: the same bench over a simulated network, one rank on each host.

`rows` says what is measured and asked, `systems` who takes part, `hosts` where. Rates
count whole Ethernet frames, as those of a real cable do: what a rate permits is the
time of the payload with the headers of its frames.
"""
