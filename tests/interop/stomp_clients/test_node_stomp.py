"""npm's stompit over TCP, and @stomp/stompjs over WebSocket: every scenario of their files in ``node/``."""

import pytest

from tests.interop import node_package
from tests.interop.stomp_clients.stomp_server import StompServer

pytestmark = [pytest.mark.timeout(node_package.TIMEOUT_S), pytest.mark.usefixtures("installed_package")]


@pytest.mark.parametrize("sentence", node_package.sentences("stompit.mjs"))
def test_stompit_works_unchanged(stomp_server: StompServer, sentence: str) -> None:
    url = f"stomp://{stomp_server.login}@{stomp_server.host}:{stomp_server.port}"
    node_package.check_scenario("stompit.mjs", url, sentence)


@pytest.mark.parametrize("sentence", node_package.sentences("stompjs.mjs"))
def test_stompjs_works_unchanged(whole_gateway: StompServer, sentence: str) -> None:
    url = f"ws://{whole_gateway.login}@{whole_gateway.host}:{whole_gateway.ports['web_stomp']}/ws"
    node_package.check_scenario("stompjs.mjs", url, sentence)
