"""What stands in for a language model: a scenario, or a schema-driven stand-in. Neither is one, and both say so."""
