"""Profiles: named brokers in a file of the user."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.ctl.connecting.profiles import FILE_VARIABLE
from gateway.cli.ctl.connecting.target import PROFILE_VARIABLE
from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the file of profiles; only the user may read it unless ``mode`` says otherwise."""

    def write(text: str, mode: int = 0o600) -> Path:
        file = tmp_path / "gatewayctl.toml"
        file.write_text(text)
        file.chmod(mode)
        monkeypatch.setenv(FILE_VARIABLE, str(file))
        return file

    return write


@pytest.fixture(autouse=True)
def users(api: FakeApi) -> None:
    api.answer("GET users", [])


def test_a_profile_names_the_broker_and_the_login(
    ctl: Ctl, api: FakeApi, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f'[profiles.eu]\nurl = "{api.url}"\nuser = "ann"\npassword = "s3cret"\n')
    monkeypatch.setenv("GATEWAYCTL_URL", "http://127.0.0.1:1")
    assert ctl("list_users", "--profile", "eu").code == 0
    assert ctl("--profile", "eu", "list_users").code == 0
    assert [request.credentials for request in api.received] == ["ann:s3cret"] * 2


def test_the_environment_names_a_profile(ctl: Ctl, api: FakeApi, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(f'[profiles.eu]\nurl = "{api.url}"\nuser = "ann"\npassword = "s3cret"\n')
    monkeypatch.setenv(PROFILE_VARIABLE, "eu")
    assert ctl("list_users").code == 0
    assert api.received[-1].credentials == "ann:s3cret"


def test_the_default_profile_is_used_without_an_address(
    ctl: Ctl, api: FakeApi, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f'default_profile = "eu"\n[profiles.eu]\nurl = "{api.url}"\nuser = "ann"\npassword = "s3cret"\n')
    monkeypatch.delenv("GATEWAYCTL_URL")
    assert ctl("list_users").code == 0
    assert api.received[-1].credentials == "ann:s3cret"


@pytest.mark.parametrize("chosen_by", ["default", "environment"])
def test_an_address_of_the_command_line_gets_no_password_of_a_profile(
    ctl: Ctl, api: FakeApi, write: Write, monkeypatch: pytest.MonkeyPatch, chosen_by: str
) -> None:
    default = 'default_profile = "eu"\n' if chosen_by == "default" else ""
    write(f'{default}[profiles.eu]\nurl = "http://far"\nuser = "ann"\npassword = "s3cret"\n')
    if chosen_by == "environment":
        monkeypatch.setenv(PROFILE_VARIABLE, "eu")
    assert ctl("list_users", "--url", api.url).code == 0
    assert api.received[-1].credentials == "guest:guest"


def test_a_password_of_a_profile_is_for_its_user_only(ctl: Ctl, api: FakeApi, write: Write) -> None:
    write(f'[profiles.eu]\nurl = "{api.url}"\nuser = "ann"\npassword = "s3cret"\n')
    assert ctl("list_users", "--profile", "eu", "--username", "bob", "--password", "other").code == 0
    assert api.received[-1].credentials == "bob:other"
    assert ctl("list_users", "--profile", "eu", "--username", "bob").code == 0
    assert api.received[-1].credentials == "bob:guest"


def test_a_command_prints_the_password(ctl: Ctl, api: FakeApi, write: Write) -> None:
    command = f"{sys.executable} -c 'print(\\\"from a command\\\")'"
    write(f'[profiles.eu]\nurl = "{api.url}"\nuser = "ann"\npassword_command = "{command}"\n')
    assert ctl("list_users", "--profile", "eu").code == 0
    assert api.received[-1].credentials == "ann:from a command"


def test_the_virtual_host_of_a_profile_is_the_default_of_verbs(ctl: Ctl, api: FakeApi, write: Write) -> None:
    write(f'[profiles.eu]\nurl = "{api.url}"\nvhost = "v1"\n')
    api.answer("GET queues/v1", [])
    assert ctl("list_queues", "--profile", "eu", "--quiet").code == 0
    assert api.received[-1].target.startswith("/api/queues/v1?")


WRONG = [
    ("[profiles.eu]\nurll = 'x'", 65, "{file}: no such key profiles.eu.urll; did you mean url?"),
    ("[profiles.eu]\nurl = 1", 65, "{file}: profiles.eu.url must be a string"),
    ("[profile.eu]\nurl = 'x'", 65, "{file}: no such key 'profile'; allowed are default_profile and [profiles.NAME]"),
    ("profiles = 1", 65, "{file}: profiles must be tables: [profiles.NAME]"),
    ("[profiles.eu", 65, None),
    ("[profiles.eur]\nurl = 'x'", 64, "no profile 'eu' in {file}; did you mean 'eur'?"),
    ("", 64, "no profile 'eu' in {file}; it has none"),
    ("[profiles.eu]\npassword_command = 'false'", 65, None),
    ("[profiles.eu]\ntoken_command = '/no/such/program'", 65, None),
]


@pytest.mark.parametrize(("text", "code", "reason"), WRONG, ids=[text for text, *_ in WRONG])
def test_a_mistake_in_the_file_is_named(ctl: Ctl, write: Write, text: str, code: int, reason: str | None) -> None:
    file = write(text)
    result = ctl("list_users", "--profile", "eu")
    assert result.code == code
    assert len(result.err.splitlines()) == 1
    if reason is not None:
        assert result.err == f"Error: {reason.format(file=file)}\n"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_file_that_others_may_use_is_refused(ctl: Ctl, write: Write, mode: int) -> None:
    file = write("[profiles.eu]\nuser = 'ann'", mode)
    result = ctl("list_users", "--profile", "eu")
    assert result.code == 65
    assert result.err == f"Error: {file} may be used by others, and has passwords: chmod 600 {file}\n"


def test_without_a_file_the_defaults_apply(ctl: Ctl, api: FakeApi) -> None:
    assert ctl("list_users").code == 0
    assert api.received[-1].credentials == "guest:guest"
