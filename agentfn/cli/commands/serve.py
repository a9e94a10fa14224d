"""Serves the embedded service on a loopback port."""

from __future__ import annotations

import shlex
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult, envelope
from agentfn.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from agentfn.emulator.server import Server
    from agentfn.emulator.tls import TlsFiles


@opt.command
def serve(
    ctx: AppContext,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free one.")] = 0,
    tls: Annotated[bool, typer.Option("--tls", help="Serve https, with a certificate made on the fly.")] = False,
    loose: Annotated[bool, typer.Option("--loose", help="Also take what older clients send.")] = False,
    scenario: opt.Scenario = None,
) -> CommandResult | None:
    """Serve the embedded service on a loopback port, for other programs and SDKs."""
    from agentfn.emulator.app import Application
    from agentfn.emulator.server import Server

    script = None
    if scenario is not None:
        if not Path(scenario).is_file():
            raise UsageError(f"there is no scenario file {scenario}")
        from agentfn.emulator.models.scenario import load_scenario

        script = load_scenario(Path(scenario))
    home = ctx.settings().home
    files = None
    if tls:
        from agentfn.emulator.tls import make_certificate

        files = make_certificate(home / "tls")
    app = Application(home / "local.db", scenario=script, loose=loose, require_token=True)
    server = Server(app, port=port, tls=files)
    try:
        _announce(ctx, server, files)
        _until_told(server)
    finally:
        server.close()
    return None


def _announce(ctx: AppContext, server: Server, files: TlsFiles | None) -> None:
    """Say where it is and what to set; the port is open by now, so whoever reads this may connect."""
    from agentfn.emulator.server import environment

    variables = environment(server.port, files)
    endpoint = variables["FOUNDRY_PROJECT_ENDPOINT"]
    url = endpoint.removesuffix("/api/projects/local")
    if ctx.json:
        data = {"url": url, "endpoint": endpoint, "port": server.port, "env": variables}
        ctx.console.out(envelope(ctx.command, data, ExitCode.OK, []))
        return
    for name, value in variables.items():
        ctx.console.out(f"export {name}={shlex.quote(value)}")
    ctx.console.say("what answers is no language model: a scenario, or a stand-in that reads the functions' schemas")
    ctx.console.say(f"ready on {url}; Ctrl-C ends it")


def _until_told(server: Server) -> None:
    """Serve until Ctrl-C or SIGTERM; both are a clean end."""

    def stop(number: int, frame: object) -> None:
        del number, frame
        # `shutdown` waits for the serving loop, which runs in this very thread.
        threading.Thread(target=server.shutdown, daemon=True).start()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve_forever()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
