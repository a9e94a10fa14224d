"""Tells a turn's events on stderr, for a person; stdout stays free for the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.visible import short, short_error, visible

if TYPE_CHECKING:
    from agentfn.cli._output import Console
    from agentfn.turn.events import Event

#: Characters of arguments, outputs and stderr that a line of the story shows.
WIDTH = 200


class Story:
    """Listens to a turn. With `stream`, the answer's text is written to stdout as it comes."""

    def __init__(self, console: Console, *, stream: bool = False) -> None:
        self._console = console
        self._stream = stream
        self.streamed = False

    def __call__(self, event: Event) -> None:
        """Tell one event."""
        tell = getattr(self, "_" + event.type.replace(".", "_"), None)
        if tell is not None:
            tell(event)

    def _call_requested(self, event: Event) -> None:
        data = event.data
        if self.streamed:
            # The agent said something before it asked; what it says next starts on a line of its own.
            self._console.out("")
            self.streamed = False
        self._console.say(f"→ {_name(event)}({short(visible(str(data['arguments'])), WIDTH)})  [{data['call']}]")

    def _call_finished(self, event: Event) -> None:
        data = event.data
        if "error" in data:
            self._console.warn(f"{_name(event)} failed: {short_error(visible(str(data['error'])), WIDTH)}")
        else:
            output = data["output"] if isinstance(data["output"], str) else "(content parts)"
            self._console.say(f"← {_name(event)}: {short(visible(output), WIDTH) if output else '(empty output)'}")
        if data.get("stderr"):
            self._console.say(f"  {_name(event)} wrote to stderr: {short_error(visible(str(data['stderr'])), WIDTH)}")

    def _call_denied(self, event: Event) -> None:
        self._console.say(f"✗ {_name(event)} was not run: {visible(str(event.data['reason']), multiline=False)}")

    def _request_retried(self, event: Event) -> None:
        if self.streamed:
            # What was shown of an answer that broke off is void; the next one is shown from its start.
            self._console.out("")
            self.streamed = False
        self._console.say(f"… {event.data['reason']}; trying again in {event.data['seconds']} s")

    def _warning(self, event: Event) -> None:
        self._console.warn(visible(str(event.data["message"])))

    def _notice(self, event: Event) -> None:
        self._console.say(visible(str(event.data["message"])))

    def _text_delta(self, event: Event) -> None:
        if self._stream:
            self._console.out_part(visible(str(event.data["text"])))
            self.streamed = True


def _name(event: Event) -> str:
    return visible(str(event.data.get("function") or "(no name)"), multiline=False)
