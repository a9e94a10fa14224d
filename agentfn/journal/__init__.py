"""What agentfn remembers: what it created, who said what, and how far each call has come.

`schema` is the documentation of the file; `store` opens it; `ledger`, `turns` and `calls` are its three topics.
"""
