"""Test files: what is read, what runs, what is expected, what is reported.

`read` makes cases of a file, `running` runs them, `expect` says in what a run differs from what was expected, `report`
tells of it, `recording` keeps what a service answered and plays it again.
"""
