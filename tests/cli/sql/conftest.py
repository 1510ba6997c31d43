"""A broker with streams, archives and a trace table, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from gateway.cli.ctl.connecting.profiles import FILE_VARIABLE
from gateway.cli.ctl.connecting.target import ENVIRONMENT, PROFILE_VARIABLE
from gateway.cli.ctl.main import main
from tests.cli.ctl.running import Ctl, Result
from tests.cli.sql.recorded_api import RecordedApi
from tests.management_client import get, put
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.waiting import wait_until

ORDERS = 4000
KEPT = 500

#: Users with their tags, and their patterns of what they may read in the virtual host /.
USERS = {"reader": ("", "^(orders|kept)$"), "stranger": ("", ""), "watcher": ("monitoring", "")}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamBroker]:
    """A broker with the streams `orders` and `secret`, and archives of `kept`, `secret` and `amq.fanout`."""
    directory = tmp_path_factory.mktemp("sql")
    with stream_broker(directory, "archive.segment_age_s=1", "archive.segment_size=64KiB") as broker:
        _fill(broker)
        yield broker


@pytest.fixture
def api(broker: StreamBroker) -> RecordedApi:
    """Its management API as an administrator."""
    return RecordedApi(broker.gateway)


@pytest.fixture
def ctl(broker: StreamBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ctl:
    """Run ``gatewayctl sql`` with these arguments."""
    for variable in (*ENVIRONMENT.values(), PROFILE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(FILE_VARIABLE, "/nonexistent/gatewayctl.toml")
    monkeypatch.setenv("GATEWAYCTL_URL", broker.options()["url"])

    def run(*arguments: str) -> Result:
        code = main(["sql", *arguments])
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return run


def _fill(broker: StreamBroker) -> None:
    gateway = broker.gateway
    for name, (tags, read) in USERS.items():
        put(gateway, f"users/{name}", {"password": name, "tags": tags})
        put(gateway, f"permissions/%2F/{name}", {"configure": "", "write": "", "read": read})
    put(gateway, "vhosts/other", {})
    put(gateway, "permissions/other/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    definition = {"pattern": "^(kept|secret|amq[.]fanout)$", "definition": {"archive": True}, "apply-to": "all"}
    put(gateway, "policies/%2F/keep", definition)
    broker.declare_stream("orders")
    broker.declare_stream("secret")
    put(gateway, "vhosts/%2F", {"trace_table": True})
    with broker.channel() as channel:
        channel.queue_declare("kept", durable=True)
        channel.queue_bind("kept", "amq.fanout")
        channel.confirm_delivery()
        channel.basic_publish("amq.fanout", "", b"by the exchange")
    broker.publish("kept", [b"kept %d" % number for number in range(KEPT)])
    put(gateway, "vhosts/%2F", {"trace_table": False})
    broker.publish("orders", [b"%d " % number + bytes(100) for number in range(ORDERS)])
    broker.publish("secret", [b"secret"])
    wait_until(lambda: _is_filed(broker), "the archives are not in files", timeout_s=200)


def _is_filed(broker: StreamBroker) -> bool:
    return all(not archive["messages"] for archive in get(broker.gateway, "archives"))
