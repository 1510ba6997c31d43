"""The lines that a broker prints when it is ready."""

import sysconfig
from pathlib import Path

import pytest

from gateway.node.announcement import announcement

SCRIPTS = Path(sysconfig.get_path("scripts"))
USUAL = {"management": ("0.0.0.0", 15672)}


def commands(addresses: dict[str, tuple[str, int]]) -> list[str]:
    lines = announcement(addresses, Path("data")).splitlines()
    return lines[lines.index("Try it, from another terminal:") + 1 :]


def test_commands_on_the_path_have_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(SCRIPTS))
    assert commands(USUAL) == ["  gateway quickstart", "  gatewayctl list_queues"]


def test_others_are_found_from_this_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(SCRIPTS.parents[1])
    assert commands(USUAL)[0] == f"  {SCRIPTS.relative_to(SCRIPTS.parents[1])}/gateway quickstart"
    monkeypatch.chdir("/")
    assert commands(USUAL)[0].endswith("/gateway quickstart")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (("127.0.0.1", 15673), "http://127.0.0.1:15673"),
        (("::", 15673), "http://127.0.0.1:15673"),
        (("::1", 15672), "http://[::1]:15672"),
    ],
)
def test_other_addresses_are_named(monkeypatch: pytest.MonkeyPatch, address: tuple[str, int], url: str) -> None:
    monkeypatch.setenv("PATH", str(SCRIPTS))
    assert commands({"management": address})[1] == f"  gatewayctl list_queues --url {url}"


def test_without_the_api_there_are_no_commands() -> None:
    assert announcement({"amqp": ("127.0.0.1", 5672)}, Path("data")).splitlines()[1:] == ["  amqp       127.0.0.1:5672"]
