"""agentfn: define, run, answer and test function agents."""

# A constant: reading it from installed metadata costs more than everything else `--version` does.
__version__ = "0.1.0"
