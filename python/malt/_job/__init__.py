"""The job: who this process is, and the calls that all ranks make together."""
