"""RabbitMQ's JMS client: topics with selectors, over exchanges of type x-jms-topic."""

from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker import Broker
from tests.interop.tools import program, run

PACKAGE: Final = Path(__file__).parents[1] / "java"
LIBRARIES: Final = PACKAGE / "lib"

#: Time limits; the first test may have to fetch the client.
INSTALL_TIMEOUT_S: Final = 180.0
RUN_TIMEOUT_S: Final = 60.0


def install() -> None:
    """Fetch the client and its dependencies with Maven, unless they are there."""
    if not LIBRARIES.exists():
        command = [program("mvn"), "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={LIBRARIES}"]
        ended = run(command, cwd=PACKAGE, timeout_s=INSTALL_TIMEOUT_S)
        assert ended.returncode == 0, (ended.stdout + ended.stderr).decode()


@pytest.mark.timeout(INSTALL_TIMEOUT_S + RUN_TIMEOUT_S)
def test_selectors_of_subscribers_to_a_topic(broker: Broker) -> None:
    install()
    program("javac")  # `java` compiles the file itself, which takes the JDK
    url = f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}/%2f"
    ended = run([program("java"), "-cp", f"{LIBRARIES}/*", "Selecting.java", url], cwd=PACKAGE, timeout_s=RUN_TIMEOUT_S)
    assert ended.stdout.decode().splitlines() == [
        "cheap: [cheap car]",
        "typed: [dear car] [cheap boat]",
        "all: [cheap car] [dear car] [cheap boat]",
    ], ended.stderr.decode()
