"""What exists: making sure an agent is there, what agentfn owns, and taking exactly that away again."""
