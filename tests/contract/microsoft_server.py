"""Microsoft's own server of the Foundry Responses protocol, with a handler that asks for one call and then answers.

Run as a program: microsoft_server.py PORT.
"""

from __future__ import annotations

import sys
from typing import Any

from azure.ai.agentserver.responses import ResponseEventStream, ResponsesAgentServerHost

app = ResponsesAgentServerHost(prefix="/api/projects/local/openai/v1")


@app.response_handler
async def handle(request: Any, context: Any, cancellation_signal: Any) -> Any:
    """Ask for the horoscope of what the user says; answer with the output that comes."""
    del cancellation_signal
    stream = ResponseEventStream(response_id=context.response_id, request=request)
    yield stream.emit_created()
    yield stream.emit_in_progress()
    items = [item if isinstance(item, dict) else dict(item) for item in await context.get_input_items()]
    outputs = [item for item in items if item.get("type") == "function_call_output"]
    if outputs:
        for event in stream.output_item_message(f"You will hear: {outputs[0]['output']}"):
            yield event
    else:
        for event in stream.output_item_function_call("get_horoscope", "call_1", '{"sign": "Aquarius"}'):
            yield event
    yield stream.emit_completed()


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(sys.argv[1]))
