"""The settings of a plugin: validated by its model, with errors that name the key and the allowed values."""

from types import ModuleType
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator

from gateway.api import ConfigurationError, PluginSettings, Value, hookimpl
from gateway.plugins.registry import FoundPlugin, PluginRegistry
from gateway.plugins.settings import described_settings, secret_settings, validated


class Server(PluginSettings):
    """A table in a table."""

    port: int = Field(80, ge=1, le=65535)


class Model(PluginSettings):
    """One field of each kind."""

    url: str
    """Address of the service,
    with its scheme."""
    mode: Literal["fast", "safe"] = "safe"
    limit: int | None = Field(None, ge=1)
    names: list[str] = Field(default_factory=list)
    server: Server = Server()

    @field_validator("url")
    @classmethod
    def _has_scheme(cls, url: str) -> str:
        if "://" not in url:
            raise ValueError("must start with a scheme, such as https://")
        return url


def registry_with(model: object) -> tuple[PluginRegistry, list[object]]:
    """Return a registry with the plugin ``mine``, and the settings that its hook gets."""
    seen: list[object] = []
    module = ModuleType("mine")

    @hookimpl
    def gateway_settings_model() -> object:
        return model

    @hookimpl
    def gateway_exchange_types(settings: object) -> dict[str, object]:
        seen.append(settings)
        return {}

    module.gateway_settings_model = gateway_settings_model  # type: ignore[attr-defined]
    module.gateway_exchange_types = gateway_exchange_types  # type: ignore[attr-defined]
    registry = PluginRegistry()
    registry.add(FoundPlugin("mine", "a test", lambda: module))
    return registry, seen


def refusal(settings: dict[str, Value], model: object = Model) -> str:
    registry, _ = registry_with(model)
    with pytest.raises(ConfigurationError) as refused:
        registry.view("/", {"mine": settings})
    return str(refused.value)


def test_hooks_get_an_instance_of_the_model() -> None:
    registry, seen = registry_with(Model)
    registry.view("/", {"mine": {"url": "http://a", "server": {"port": 81}}})
    assert seen == [Model(url="http://a", server=Server(port=81))]


WRONG: list[tuple[dict[str, Value], str]] = [
    ({}, "url: is required; must be a string"),
    ({"url": 1}, "url: must be a string, not 1"),
    ({"url": "a"}, "url: must start with a scheme, such as https://"),
    ({"url": "a://", "mode": "slow"}, "mode: must be 'fast' or 'safe', not 'slow'"),
    ({"url": "a://", "mod": "fast"}, "mod: no such setting; did you mean mode?"),
    ({"url": "a://", "x": 1}, "x: no such setting; allowed here: url, mode, limit, names, server"),
    ({"url": "a://", "limit": 0}, "limit: must be an integer at least 1 or none, not 0"),
    ({"url": "a://", "names": ["a", 1]}, "names: must be a list, each item a string, not 1"),
    ({"url": "a://", "server": {"port": 0}}, "server.port: must be an integer at least 1 and at most 65535, not 0"),
    ({"url": "a://", "server": {"prt": 0}}, "server.prt: no such setting; did you mean port?"),
    ({"url": "a://", "server": 1}, "server: must be a table of port, not 1"),
]


@pytest.mark.parametrize(("settings", "reason"), WRONG, ids=[reason for _, reason in WRONG])
def test_wrong_settings_are_refused_with_the_key_and_the_allowed_values(
    settings: dict[str, Value], reason: str
) -> None:
    assert refusal(settings) == f"virtual host '/': the settings of plugin 'mine': {reason}"


def test_each_wrong_key_is_a_line() -> None:
    assert [line.split(": ", 2)[-1].split(":")[0] for line in refusal({"url": 1, "mode": 1}).split("\n")] == [
        "url",
        "mode",
    ]


def test_a_model_that_ignores_unknown_keys_is_not_silent() -> None:
    class Lax(BaseModel):
        a: int = 1

    assert "b: no such setting; allowed here: a" in refusal({"b": 1}, Lax)


def test_a_model_may_allow_extra_keys() -> None:
    class Open(BaseModel, extra="allow"):
        a: int = 1

    registry, seen = registry_with(Open)
    registry.view("/", {"mine": {"b": 2}})
    assert seen == [Open.model_validate({"b": 2})]


def test_a_hook_that_returns_no_model_is_an_error() -> None:
    assert refusal({}, dict).endswith("gateway_settings_model returned <class 'dict'>, which is not a pydantic model")


def test_a_validator_that_raises_names_the_plugin_and_its_line() -> None:
    class Broken(PluginSettings):
        a: int = 1

        @field_validator("a")
        @classmethod
        def _fail(cls, a: int) -> int:
            raise KeyError("lost")

    assert f"plugin 'mine' ({__file__}:" in refusal({"a": 2}, Broken)
    assert refusal({"a": 2}, Broken).endswith("KeyError: 'lost'")


def test_a_lenient_view_has_the_reason() -> None:
    registry, seen = registry_with(Model)
    view = registry.view("/", {"mine": {}}, is_lenient=True)
    assert "url: is required" in view.inert["mine"]
    assert seen == []


def test_settings_are_described() -> None:
    rows = described_settings(Model)
    assert rows[0] == {
        "name": "url", "allowed": "a string", "description": "Address of the service, with its scheme.",
    }  # fmt: skip
    assert [row["name"] for row in rows] == ["url", "mode", "limit", "names", "server.port"]
    assert rows[-1]["default"] == 80


class Secrets(PluginSettings):
    """Secrets of each kind, and a setting that is none."""

    password: Annotated[SecretStr, Field(min_length=8)]
    by_name: dict[str, Annotated[SecretStr, Field(min_length=8)]] = {}
    several: list[SecretStr] = []
    name: str = ""


def test_secrets_are_known_and_not_shown_in_errors() -> None:
    assert secret_settings(Secrets) == {"password", "by_name", "several"}
    for settings in ({"password": "hush"}, {"password": "long enough", "by_name": {"one": "hush"}}):
        with pytest.raises(ConfigurationError) as refused:
            validated(Secrets, settings)
        assert "hush" not in str(refused.value)
        assert "must be" in str(refused.value)
