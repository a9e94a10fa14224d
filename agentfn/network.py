"""Which addresses mean this machine: a token, or a call's arguments, go there over plain http and nowhere else."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str | None) -> bool:
    """Tell whether a host name means this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
