"""YAML and JSON with positions, and JSON Schema checks: what definitions, scenarios and the embedded service share."""
