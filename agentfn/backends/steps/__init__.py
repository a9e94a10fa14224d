"""The style in which each model step is a request: the Responses API, plain and as Foundry speaks it.

Calls are found in a response; all outputs of one response go back together, in the next request.
"""
