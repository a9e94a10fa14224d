"""`init`: each file works as it is, and nothing is overwritten."""

from __future__ import annotations

import subprocess
import sys


def test_what_init_writes_works_as_it_is(run, tmp_path) -> None:
    written = run("init", "shop", "--json").data["written"]
    assert len(written) == 4
    assert run("test", "shop", "--json").data["passed"] == 3
    assert "shipped" in run("chat", "shop/agent.yaml", "Where is my order 1042?", "--rm").stdout
    assert run("validate", "shop/agent.yaml", "--json").data["files"][0]["findings"] == []
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"),
            tmp_path / "shop" / ".github" / "workflows" / "agent-tests.yml",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_init_overwrites_nothing(run, tmp_path) -> None:
    run("init", "shop")
    assert run("init", "shop", "--json").data["written"] == []
    (tmp_path / "shop" / "orders.py").write_text("mine")
    (tmp_path / "shop" / "agent.yaml").unlink()
    assert "shop/orders.py would be overwritten" in run("init", "shop", exit=1).stderr
    assert (tmp_path / "shop" / "orders.py").read_text() == "mine"
    assert not (tmp_path / "shop" / "agent.yaml").exists()
