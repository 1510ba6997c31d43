"""docs/plugins/io.md: the plugin posts failed logins from a thread."""

import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType

import pika
import pytest
from pika.exceptions import AMQPConnectionError

from gateway.api import Event
from gateway.testing import Gateway
from tests.waiting import wait_until

PAGE = Path(__file__).parents[3] / "docs" / "plugins" / "io.md"


@pytest.fixture
def received() -> Iterator[tuple[str, list[bytes]]]:
    """The URL of a web server, and the bodies that were posted to it."""
    bodies: list[bytes] = []

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/reports", bodies
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def webhook() -> ModuleType:
    """The plugin of the page as a module."""
    (code,) = re.findall(r"```python\n# webhook.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module = ModuleType("webhook")
    exec(compile(code, "webhook.py", "exec"), module.__dict__)
    return module


def test_a_failed_login_is_posted(received: tuple[str, list[bytes]], tmp_path: Path) -> None:
    url, bodies = received
    plugins = tmp_path / "plugins"
    plugins.mkdir(mode=0o700)
    (code,) = re.findall(r"```python\n# webhook.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (plugins / "webhook.py").write_text(code)
    with Gateway([f"plugins_dir={plugins}"]) as broker:
        broker.enable("webhook", {"url": url, "timeout_s": 60})
        with pytest.raises(AMQPConnectionError):
            pika.BlockingConnection(pika.URLParameters(broker.amqp_url.replace("guest:guest", "mallory:wrong")))
        wait_until(lambda: bodies)
        assert bodies == [b'{"user": "mallory"}']
        broker.request("DELETE", "plugins", broker.vhost, "webhook")


def failed_login(user: str) -> Event:
    return Event("user.authentication.failure", "/", user, {})


def test_the_thread_goes_on_after_an_answer_that_is_no_http(
    webhook: ModuleType, received: tuple[str, list[bytes]]
) -> None:
    url, bodies = received
    with socket.create_server(("127.0.0.1", 0)) as broken:

        def answer() -> None:
            connection, _ = broken.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"220 ready\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        settings = webhook.Settings(url=f"http://127.0.0.1:{broken.getsockname()[1]}/", timeout_s=60)
        listener = webhook.Webhook(settings)
        listener.on_event(failed_login("first"))
        thread.join()
        wait_until(lambda: listener.dropped == 1)
    listener._settings = webhook.Settings(url=url, timeout_s=60)
    listener.on_event(failed_login("second"))
    wait_until(lambda: bodies)
    listener.close()
    assert (bodies, listener.dropped) == ([b'{"user": "second"}'], 1)


def test_an_invalid_url_is_counted_for_each_report(webhook: ModuleType) -> None:
    listener = webhook.Webhook(webhook.Settings(url="no-url"))
    for user in ("first", "second"):
        listener.on_event(failed_login(user))
    wait_until(lambda: listener.dropped == 2)
    listener.close()
    assert listener.dropped == 2
