"""What a handler sees of the environment: what a process needs to start, what it declares, and where it is called from."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentfn.handlers.protocol import CallContext

#: What a process needs to start and to write text, nothing that could be a credential.
_NEEDED = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"})
_NEEDED_ON_WINDOWS = frozenset(
    {
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "WINDIR",
        "COMSPEC",
        "PATHEXT",
        "TEMP",
        "TMP",
        "USERPROFILE",
        "USERNAME",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMDATA",
        "NUMBER_OF_PROCESSORS",
    },
)
#: Ids come from a service, and a process cannot be given these.
_UNFIT = re.compile("[\0\ud800-\udfff]")


def handler_environment(
    env: Mapping[str, str],
    declared: Iterable[str],
    context: CallContext,
    *,
    windows: bool = os.name == "nt",
) -> dict[str, str]:
    """Return the environment of a handler's process; on Windows the case of a variable's name does not count."""
    allowed = {*_NEEDED, *declared}
    if windows:
        allowed = {name.upper() for name in allowed | _NEEDED_ON_WINDOWS}
    seen = {
        name: value
        for name, value in env.items()
        if (name.upper() if windows else name) in allowed or name.startswith("LC_")
    }
    told = {
        "AGENTFN_FUNCTION": context.call.function,
        "AGENTFN_CALL_ID": context.call.id,
        "AGENTFN_CONVERSATION_ID": context.conversation,
        "AGENTFN_TURN_ID": context.turn,
        "AGENTFN_BACKEND": context.backend,
    }
    return seen | {name: _UNFIT.sub("\ufffd", value) for name, value in told.items()}
