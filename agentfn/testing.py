"""For people who test their own code: the matchers of test files, and the embedded service to test against.

from agentfn.testing import EmbeddedService, assert_calls, matching

def test_asks_for_the_sign(agentfn_service):          # a fixture of the pytest plugin
    agentfn_service.play([{"call": {"get_horoscope": {"sign": "Aquarius"}}}, {"say": "An otter."}])
    response = my_program.ask("What is my horoscope?")
    assert_calls(response.output, ["get_horoscope"])
    assert response.output_text == matching({"contains": "otter"})
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentfn.cases.expect.calls import call_failures
from agentfn.cases.expect.matchers import Difference, for_structure
from agentfn.cases.expect.read import read_expectations
from agentfn.cases.expect.words import MatcherReader
from agentfn.cases.happened import HappenedCall
from agentfn.definition.reader import Reader
from agentfn.document.read import Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentfn.cases.expect.expectations import Order
    from agentfn.cases.expect.matchers import Matcher
    from agentfn.emulator.app import Application
    from agentfn.emulator.server import Server
    from agentfn.model import Json

__all__ = ["Difference", "EmbeddedService", "Matching", "assert_calls", "differences", "matching"]


def differences(actual: Json, expected: Json) -> list[Difference]:
    """Return where a value is not as expected; `expected` is written as in a test file (docs/tests.md).

    Raises ValueError where `expected` is no sensible expectation.
    """
    return matching(expected).differences(actual)


def matching(expected: Json) -> Matching:
    """Return what is equal to every value that is as expected.

    It is for assertions: ``assert answer == matching({"regex": "otter"})``. Raises ValueError where `expected` is no
    sensible expectation.
    """
    return Matching(expected)


class Matching:
    """An expectation that compares with ``==``, and that pytest explains where it does not hold."""

    __hash__ = None  # type: ignore[assignment]  # it is equal to many things

    def __init__(self, expected: Json) -> None:
        reader = _reader(expected)
        self._matcher: Matcher = MatcherReader(reader).read(expected, ())
        _require_sound(reader)

    def differences(self, actual: Json) -> list[Difference]:
        """Return where a value is not as expected. A text is read as JSON where the expectation needs a structure."""
        return for_structure(self._matcher).differences(actual)

    def __eq__(self, actual: object) -> bool:
        return not self.differences(actual)

    def __repr__(self) -> str:
        return f"matching({self._matcher})"


def assert_calls(
    calls: Iterable[Any], expected: Sequence[Json] | str, *, order: Order = "any", nothing_else: bool = False
) -> None:
    """Compare calls with expected ones, written as in a test file, and raise AssertionError that explains the nearest.

    A call is a pair of name and arguments, or an item of a service or SDK with `name` and `arguments`; items of a
    response's output that are something else are passed over. Raises ValueError where `expected` is not sensible.
    """
    value = {
        "calls": [expected] if isinstance(expected, (str, Mapping)) else list(expected),
        "order": order,
        "nothing_else": nothing_else,
    }
    reader = _reader(value)
    expectations = read_expectations(reader, value, (), None)
    _require_sound(reader)
    failures = list(call_failures(expectations, _happened(calls)))
    if failures:
        raise AssertionError("\n".join(line for failure in failures for line in failure.lines()))


def _reader(value: Json) -> Reader:
    return Reader(Document("expected", value, {}, {}), {})


def _require_sound(reader: Reader) -> None:
    if reader.findings:
        raise ValueError("; ".join(finding.message for finding in reader.findings))


def _happened(calls: Iterable[Any]) -> list[HappenedCall]:
    found: list[HappenedCall] = []
    for call in calls:
        name, arguments = call if isinstance(call, tuple) else _named(call)
        if not isinstance(name, str) or arguments is None:
            continue
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        number = len(found) + 1
        found.append(HappenedCall(1, number, f"call {number}", name, text, "pending"))
    return found


def _named(item: Any) -> tuple[Any, Any]:
    """Return an item's name and arguments, which stand under `function` in chat completions, and the name in our own."""
    kind = _member(item, "type")
    if isinstance(kind, str) and "function" not in kind:
        return None, None
    function = _member(item, "function")
    if isinstance(function, str):
        return function, _member(item, "arguments")
    inner = item if function is None else function
    return _member(inner, "name"), _member(inner, "arguments")


def _member(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


class EmbeddedService:
    """The embedded service on a loopback port while its block runs, with a state of its own that goes with it.

    It is no language model: `play` says what it does, else a stand-in fills the functions' schemas.
    """

    def __init__(self, scenario: Json = None) -> None:
        self._scenario = scenario
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._app: Application
        self._server: Server

    def __enter__(self) -> Self:
        """Start it; it takes connections when this returns."""
        from agentfn.emulator.app import Application
        from agentfn.emulator.server import Server

        self._folder = tempfile.TemporaryDirectory(prefix="agentfn-")
        self._app = Application(Path(self._folder.name) / "local.db", durable=False, require_token=True)
        if self._scenario is not None:
            self.play(self._scenario)
        self._server = Server(self._app).__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop it and remove its state."""
        self._server.__exit__(*exc)
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that point unmodified programs and SDKs here."""
        from agentfn.emulator.server import environment

        return environment(self._server.port, None)

    @property
    def project_endpoint(self) -> str:
        """Return the address of a Foundry project here."""
        return self.environment["FOUNDRY_PROJECT_ENDPOINT"]

    @property
    def openai_base_url(self) -> str:
        """Return the address for clients of OpenAI's APIs."""
        return self.environment["OPENAI_BASE_URL"]

    def play(self, steps: Json) -> None:
        """Let conversations that begin from now on follow a scenario, written as in docs/scenario.md.

        Raises agentfn.errors.InvalidFileError where a step is wrong.
        """
        from agentfn.emulator.models.scenario import parse_scenario

        self._app.scenario = parse_scenario(steps, "scenario")

    def advance(self, seconds: float) -> None:
        """Move the service's clock forward, as if that time had gone by."""
        self._app.store.advance(seconds)

    @property
    def requests(self) -> list[dict[str, Json]]:
        """Return what was asked lately: `method`, `path`, `query`, `body` (text), `status`; no headers."""
        return list(self._app.recent)
