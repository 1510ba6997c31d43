"""Fixtures: gatewayctl in the test process, against an API with canned answers."""

from collections.abc import Iterator

import pytest

from gateway.cli.ctl.connecting.profiles import FILE_VARIABLE
from gateway.cli.ctl.connecting.target import ENVIRONMENT, PROFILE_VARIABLE
from gateway.cli.ctl.main import main
from tests.cli.ctl.fake_api import FakeApi, fake_api
from tests.cli.ctl.running import Ctl, Result


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """An API with a node, the virtual hosts / and v1, and the user bob."""
    with fake_api() as api:
        api.answer("GET overview", {"node": "gateway@here", "listeners": []})
        api.answer("GET vhosts", [{"name": "/"}, {"name": "v1"}])
        api.answer("GET users/bob", {"name": "bob", "password_hash": "h", "hashing_algorithm": "a", "tags": ["x", "y"]})
        yield api


@pytest.fixture
def ctl(api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ctl:
    """Run ``gatewayctl`` with these arguments."""
    for variable in (*ENVIRONMENT.values(), PROFILE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(FILE_VARIABLE, "/nonexistent/gatewayctl.toml")
    monkeypatch.setenv("GATEWAYCTL_URL", api.url)

    def run(*arguments: str) -> Result:
        code = main(arguments)
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run
