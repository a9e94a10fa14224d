"""The turn: a message goes in, calls come out and are answered, until the agent has its say.

`session` gathers what a turn needs, `loop` runs it, `settle` finds an outcome for each call, `events` is what happened,
`state` is how it ended.
"""
