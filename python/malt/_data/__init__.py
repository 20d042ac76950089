"""A rank's part of the data: `malt.load` of files, `malt.shard` of what is in memory."""
