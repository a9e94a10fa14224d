"""The style in which the server holds the turn open: sessions of the OpenAI Agents API (openai-agents.md §3 to §6).

A session says what waits; the event stream is only a hint to look. Outputs go one by one.
"""
