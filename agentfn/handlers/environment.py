"""What a handler sees of the environment: what a process needs to start, what it declares, and where it is called from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentfn.handlers.protocol import CallContext

#: What a process needs to start and to write text, nothing that could be a credential.
_NEEDED = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL")
_NEEDED_ON_WINDOWS = (
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
)


def handler_environment(env: Mapping[str, str], declared: Iterable[str], context: CallContext) -> dict[str, str]:
    """Return the environment of a handler's process."""
    allowed = {*_NEEDED, *_NEEDED_ON_WINDOWS, *declared}
    seen = {name: value for name, value in env.items() if name.upper() in allowed or name in allowed}
    seen |= {name: value for name, value in env.items() if name.startswith("LC_")}
    return seen | {
        "AGENTFN_FUNCTION": context.call.function,
        "AGENTFN_CALL_ID": context.call.id,
        "AGENTFN_CONVERSATION_ID": context.conversation,
        "AGENTFN_TURN_ID": context.turn,
        "AGENTFN_BACKEND": context.backend,
    }
