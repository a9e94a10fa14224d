"""Where each setting comes from, and what a config file may not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentfn.errors import InvalidFileError, UsageError
from agentfn.settings import Settings, load_settings, require_endpoint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def load(tmp_path: Path):
    project = tmp_path / "project"
    (project / "deep" / "er").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    user = tmp_path / "home" / "config.toml"

    def run(
        env: dict[str, str] | None = None, project_file: str | None = None, user_file: str = "", **flags: Any
    ) -> Settings:
        user.write_text(user_file)
        if project_file is not None:
            (project / "agentfn.toml").write_text(project_file)
        home = {"AGENTFN_HOME": str(tmp_path / "home")}
        return load_settings({**home, **(env or {})}, project / "deep" / "er", flags)

    return run


def test_the_order_is_flag_environment_project_user_default(load) -> None:
    files = {"project_file": 'backend = "foundry"\n', "user_file": 'backend = "local"\nmodel = "m"\n'}
    assert load().backend == ("local", "default")
    assert load(**files).backend.value == "foundry"
    assert load(**files).backend.origin.endswith("agentfn.toml")
    assert load({"AGENTFN_BACKEND": "local"}, **files).backend == ("local", "AGENTFN_BACKEND")
    assert load({"AGENTFN_BACKEND": "local"}, backend="foundry", **files).backend == ("foundry", "--backend")
    assert load(**files).model.value == "m"


def test_an_endpoint_in_the_environment_never_switches_to_a_paid_service(load) -> None:
    settings = load({"FOUNDRY_PROJECT_ENDPOINT": "https://x"})
    assert settings.backend.value == "local"
    assert settings.endpoint.value is None


def test_the_variables_of_an_endpoint_are_read_in_order(load) -> None:
    env = {"PROJECT_ENDPOINT": "https://c", "AZURE_AI_PROJECT_ENDPOINT": "https://b"}
    assert load(env, backend="foundry").endpoint == ("https://b", "AZURE_AI_PROJECT_ENDPOINT")
    env["FOUNDRY_PROJECT_ENDPOINT"] = "https://a"
    assert load(env, backend="foundry").endpoint.value == "https://a"
    assert load(env, backend="foundry", endpoint="https://z").endpoint == ("https://z", "--endpoint")
    with pytest.raises(UsageError, match="needs an endpoint"):
        require_endpoint(load(backend="foundry"))


def test_profiles_hold_settings_and_are_chosen_by_name(load) -> None:
    text = 'backend = "local"\n[profiles.work]\nbackend = "foundry"\nendpoint = "https://w"\nmodel = "big"\n'
    assert load(project_file=text).backend.value == "local"
    settings = load({"AGENTFN_PROFILE": "work"}, project_file=text)
    assert (settings.backend.value, settings.endpoint.value, settings.model.value) == ("foundry", "https://w", "big")
    assert "profile work" in settings.backend.origin
    with pytest.raises(UsageError, match="no profile play"):
        load(project_file=text, profile="play")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('api_key = "x"\n', "looks like a secret"),
        ('[profiles.work]\ntoken = "x"\n', "looks like a secret"),
        ('bakend = "local"\n', "did you mean backend"),
        ("backend = 3\n", "backend must be a text"),
        ("backend = \n", "Invalid value"),
    ],
)
def test_a_wrong_config_file_is_told(load, text: str, told: str) -> None:
    with pytest.raises(InvalidFileError, match=told):
        load(project_file=text)


def test_a_finding_names_the_line(load) -> None:
    with pytest.raises(InvalidFileError) as caught:
        load(project_file='\nbackend = "local"\nsecret_x = 1\n')
    assert caught.value.findings[0].line == 3


@pytest.mark.parametrize("flags", [{"backend": "opnai"}, {"protocol": "soap"}])
def test_unknown_names_are_usage_errors_that_list_the_known(load, flags: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        load(**flags)
    assert "foundry" in str(caught.value.hint)
