"""Runs cases: where an attempt takes place, one attempt, many of them side by side, and what comes of them."""
