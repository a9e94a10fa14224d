"""How many attempts run at the same time: fewer where the service asks for patience, more again when it is calm."""

from __future__ import annotations


class Cap:
    """Starts at `most`; halves under strain, and grows by one after as many calm attempts as it allows now."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.now = most
        self._calm = 0

    def attempt_ended(self, *, strained: bool) -> None:
        """Take the end of an attempt, and whether any request had to be repeated since the last one ended."""
        if strained:
            self.now = max(1, self.now // 2)
            self._calm = 0
            return
        self._calm += 1
        if self._calm >= self.now and self.now < self.most:
            self.now += 1
            self._calm = 0
