"""The agent file: what an author wrote, checked with every finding at its place, independent of any service."""
