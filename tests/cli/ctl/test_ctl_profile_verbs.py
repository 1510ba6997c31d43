"""The verbs that change the file of profiles, and keep what else is in it."""

import io
import json
import stat
from pathlib import Path

import pytest

from gateway.cli.ctl.connecting.profiles import FILE_VARIABLE
from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

WRITTEN = """\
# my brokers
default_profile = "eu"  # the nearest

[profiles.eu]
url = "http://eu"
password = "s3cret"

# beyond the sea
[profiles."us"]
url = "http://us"
"""


@pytest.fixture
def file(ctl: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the file, which does not exist."""
    file = tmp_path / "config" / "gatewayctl.toml"
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    return file


@pytest.fixture
def written(file: Path) -> Path:
    """Return the path of a file with two profiles."""
    file.parent.mkdir()
    file.write_text(WRITTEN)
    file.chmod(0o600)
    return file


def test_an_added_profile_is_used(ctl: Ctl, api: FakeApi, file: Path) -> None:
    api.answer("GET users", [])
    added = ctl("profile", "add", "eu", "--url", api.url, "--user", "ann", "--password", "s3cret", "-p", "v1")
    assert (added.code, added.err) == (0, "")
    assert ctl("--profile", "eu", "list_users").code == 0
    assert [request.credentials for request in api.received] == ["ann:s3cret"]


def test_only_the_user_may_read_the_file(ctl: Ctl, file: Path) -> None:
    ctl("profile", "add", "eu", "--url", "http://eu", "--password", "s3cret")
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    ctl("profile", "use", "eu")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_options_before_the_verb_are_those_of_the_profile(ctl: Ctl, file: Path) -> None:
    assert ctl("--username", "ann", "--url", "http://eu", "profile", "add", "eu").code == 0
    assert file.read_text() == '[profiles.eu]\nurl = "http://eu"\nuser = "ann"\n'


def test_the_password_is_read_from_standard_input(ctl: Ctl, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('pass "word"\n'))
    assert ctl("profile", "add", "eu", "--url", "http://eu", "--ask-password").code == 0
    assert file.read_text().endswith('password = "pass \\"word\\""\n')


def test_the_list_has_no_passwords(ctl: Ctl, written: Path) -> None:
    ctl("profile", "add", "as", "--url", "http://as", "--token-command", "get-token")
    listed = ctl("profile", "list", "--formatter=json")
    rows = json.loads(listed.out)
    assert [(row["name"], row["default"], row["secret"]) for row in rows] == [
        ("as", False, "token_command"),
        ("eu", True, "password"),
        ("us", False, ""),
    ]
    assert "s3cret" not in listed.out


def test_everything_else_in_the_file_stays(ctl: Ctl, written: Path) -> None:
    assert ctl("profile", "use", "us").code == 0
    changed = WRITTEN.replace('default_profile = "eu"  # the nearest', 'default_profile = "us"')
    assert written.read_text() == changed
    ctl("profile", "add", "as", "--url", "http://as")
    assert written.read_text() == changed + '\n[profiles.as]\nurl = "http://as"\n'
    ctl("profile", "remove", "as")
    assert written.read_text() == changed + "\n"
    assert ctl("profile", "remove", "eu").code == 0
    assert written.read_text().startswith(
        '# my brokers\ndefault_profile = "us"\n\n\n# beyond the sea\n[profiles."us"]\n'
    )


def test_a_removed_default_leaves_none(ctl: Ctl, written: Path) -> None:
    assert ctl("profile", "remove", "eu").code == 0
    assert "default_profile" not in written.read_text()
    assert [row["name"] for row in json.loads(ctl("profile", "list", "--formatter=json").out)] == ["us"]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["add", "eu", "--url", "http://x"], 64, "profile 'eu' exists in {file}; remove it first"),
        (["add", "as"], 64, "a profile needs the address of its broker: --url"),
        (["add", "as", "--url", "eu"], 64, "'eu' is not a URL such as http://127.0.0.1:15672"),
        (
            ["add", "as", "--url", "http://x", "--password", "a", "--password-command", "b"],
            64,
            "give one of --password, --ask-password, --password-command and --token-command",
        ),
        (["remove", "as"], 64, "no profile 'as' in {file}"),
        (["use", "as"], 64, "no profile 'as' in {file}"),
    ],
)
def test_a_wrong_command_changes_nothing(ctl: Ctl, written: Path, arguments: list[str], code: int, error: str) -> None:
    result = ctl("profile", *arguments)
    assert (result.code, result.err) == (code, f"Error: {error.format(file=written)}\n")
    assert written.read_text() == WRITTEN


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('profiles = {eu = {url = "http://eu"}}\n', ["add", "us", "--url", "http://us"]),
        ('profiles = {eu = {url = "http://eu"}}\n', ["remove", "eu"]),
        ('[profiles]\neu.url = "http://eu"\n', ["remove", "eu"]),
        ('[profiles.us]\nurl = """\n[profiles.eu]\n"""\n[profiles]\neu.url = "http://eu"\n', ["remove", "eu"]),
    ],
)
def test_a_file_in_another_form_is_not_changed(ctl: Ctl, written: Path, text: str, arguments: list[str]) -> None:
    written.write_text(text)
    result = ctl("profile", *arguments)
    form = "has its profiles in another form than [profiles.NAME]: change it with an editor"
    assert (result.code, result.err) == (65, f"Error: {written} {form}\n")
    assert written.read_text() == text


def test_a_name_with_unusual_characters_is_quoted(ctl: Ctl, file: Path) -> None:
    assert ctl("profile", "add", "a.b c", "--url", "http://x").code == 0
    assert file.read_text() == '[profiles."a.b c"]\nurl = "http://x"\n'
    assert ctl("profile", "remove", "a.b c").code == 0
    assert file.read_text() == ""


def test_a_link_to_the_file_stays(ctl: Ctl, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(written)
    monkeypatch.setenv(FILE_VARIABLE, str(link))
    assert ctl("profile", "use", "us").code == 0
    assert link.is_symlink()
    assert 'default_profile = "us"' in written.read_text()


def test_a_file_that_others_may_read_is_refused(ctl: Ctl, written: Path) -> None:
    written.chmod(0o644)
    result = ctl("profile", "use", "us")
    assert (result.code, written.read_text()) == (65, WRITTEN)
