"""The real command in a process of its own, with an empty home; the embedded service on a port; scripted servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "samples"

#: Never inherited: what would point a test at a real service, at the user's own state, or change what is printed.
DROPPED = (
    "AGENT_TOKEN",
    "AGENTFN_BACKEND",
    "AGENTFN_DEBUG",
    "AGENTFN_PROFILE",
    "AZURE_AI_PROJECT_ENDPOINT",
    "CI",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
    "FOUNDRY_MODEL_NAME",
    "FOUNDRY_PROJECT_ENDPOINT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_COLOR",
    "PROJECT_ENDPOINT",
    "PYTHONDONTWRITEBYTECODE",
    "TF_BUILD",
    "http_proxy",
    "https_proxy",
)


class Ran(NamedTuple):
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """Return stdout as the one JSON document it must be."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def data(self) -> Any:
        """Return the envelope's data."""
        return self.json["data"]


class Runner:
    """Runs `agentfn` and checks its exit code; when that is wrong, says everything that is known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.env = {name: value for name, value in os.environ.items() if name not in DROPPED}
        self.env |= {"AGENTFN_HOME": str(self.home), "HOME": str(folder)}

    def __call__(
        self,
        *args: str | Path,
        exit: int = 0,  # noqa: A002  # it reads as what it is in every test
        stdin: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        command = [sys.executable, "-m", "agentfn", *map(str, args)]
        done = subprocess.run(
            command,
            input=data,
            stdin=subprocess.DEVNULL if data is None else None,
            capture_output=True,
            env={**self.env, **(env or {})},
            cwd=cwd or self.folder,
            timeout=60,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
        assert ran.exit_code == exit, (
            f"{command}\nexit {ran.exit_code}\n--- stdout\n{ran.stdout}\n--- stderr\n{ran.stderr}"
        )
        return ran

    def start(self, *args: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command and leave it running; the caller ends it."""
        return subprocess.Popen(
            [sys.executable, "-m", "agentfn", *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.env, **(env or {})},
            cwd=self.folder,
        )

    def on_terminal(self, *args: str | Path, answers: str, exit: int = 0) -> str:  # noqa: A002  # see __call__
        """Run on a pseudo terminal, typing `answers`; return all that was shown."""
        import pty

        main, side = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "agentfn", *map(str, args)],
            stdin=side,
            stdout=side,
            stderr=side,
            env={**self.env, "TERM": "xterm", "COLUMNS": "200"},
            cwd=self.folder,
            start_new_session=True,
        )
        os.close(side)
        os.write(main, answers.encode())
        shown = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            shown += piece
        os.close(main)
        code = process.wait(timeout=60)
        text = shown.decode("utf-8", "replace")
        assert code == exit, f"exit {code}\n{text}"
        return text


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file into the test's folder and return its path."""

    def save(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return save


class Served(NamedTuple):
    """A running `agentfn serve`."""

    process: subprocess.Popen[str]
    endpoint: str
    url: str
    env: dict[str, str]
    runner: Runner


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Served]]:
    """Start `agentfn serve` with a state of its own; ends when the test does."""
    running: list[subprocess.Popen[str]] = []

    def begin(*args: str | Path, folder: Path | None = None) -> Served:
        runner = Runner(folder or tmp_path_factory.mktemp("served"))
        process = runner.start("serve", "--json", *args)
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1])
        data = json.loads(line)["data"]
        return Served(process, data["endpoint"], data["url"], data["env"], runner)

    yield begin
    for process in running:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=30)


def eventually(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for a condition to hold and return its value; fail where it does not in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("the condition never held")


AGENT = """\
name: {name}
model: gpt-5-mini
instructions: You help.
tools:
  - name: {function}
    description: Look up the weather in a city.
    parameters:
      type: object
      properties:
        city: {{type: string, description: A city like Oslo or Bergen}}
      required: [city]
      additionalProperties: false
    handler: {handler}
"""


@pytest.fixture
def agent(write: Callable[..., Path]) -> Callable[..., Path]:
    """Write an agent file with one function whose handler is given as one line of YAML."""

    def make(handler: str = "manual", *, name: str = "demo", function: str = "get_weather", extra: str = "") -> Path:
        text = AGENT.format(name=name, function=function, handler=handler) + extra
        return write(f"{name}.yaml", text)

    return make
