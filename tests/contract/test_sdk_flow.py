"""Unmodified SDKs against `agentfn serve --tls`, given nothing but the environment it prints (foundry.md §7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("azure.ai.projects")

PROGRAM = Path(__file__).parent / "sdk_program.py"


def run_program(env: dict[str, str], folder: Path) -> dict[str, object]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AZURE_", "FOUNDRY_"))}
    # The token of the environment is no credential of the SDK: it has to come through the identity endpoint.
    given = {name: value for name, value in env.items() if name != "AGENT_TOKEN"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**kept, **given, "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_the_documented_flow_runs_unmodified(serve, tmp_path):
    served = serve("--tls")
    assert served.env["FOUNDRY_PROJECT_ENDPOINT"].startswith("https://")
    answer = 'get_horoscope gave {"horoscope": "Aquarius: a baby otter."}'
    assert run_program(served.env, tmp_path) == {
        "by_response": answer,
        "by_conversation": answer,
        "items": ["message", "function_call", "function_call_output", "message"],
        "retrieved": True,
        "input_items": ["function_call_output"],
        "metadata": {"a": "b"},
        "conversation_deleted": True,
        "stream_first": ["response.created", "response.in_progress"],
        "stream_arguments": True,
        "stream_text": answer,
        "cancelled": ["queued", "cancelled"],
        "missing_agent": "not_found",
        "bad_name": "invalid_parameters",
        "strict": "invalid_function_parameters",
        "unknown_agent": "not_found",
        "old_field": "invalid_payload",
        "model_too": "invalid_payload",
        "versions": ["2", "1"],
        "latest": True,
        "listed": ["MyAgent"],
        "gone": [],
    }


def test_the_bundle_keeps_the_systems_certificates(serve):
    import ssl

    bundle = Path(serve("--tls").env["SSL_CERT_FILE"])
    context = ssl.create_default_context(cafile=str(bundle))
    assert context.cert_store_stats()["x509_ca"] > 10
