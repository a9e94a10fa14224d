"""Tells what came of a run: on a terminal, as JSON, JUnit XML, CI annotations, and one HTML page."""
