"""One module a command; `agentfn.cli._lazy` has the table."""
