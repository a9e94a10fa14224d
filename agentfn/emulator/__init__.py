"""The embedded service: state in one SQLite file, the faces of real services over it, and a stand-in for a model.

`app` is the WSGI application, `store` its state, `foundry` the face of Microsoft Foundry, `models` what answers,
`server` puts it on a port. It shares no protocol code with `agentfn.backends`, so that neither can hide the other's
mistakes.
"""
