"""Seconds until a model is as good as it should be: `make bench-training`.

`tasks` has the data, the steps and the targets; `contenders` what each way of learning with several
processes adds to the serial program; `rank` trains against the clock; `race` tunes and measures;
`show` makes the table and the chart.
"""
