"""RabbitMQ's JMS client: topics with selectors, over exchanges of type x-jms-topic."""

from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker import Broker
from tests.interop.tools import MAVEN_TIMEOUT_S, java_libraries, program, run

PACKAGE: Final = Path(__file__).parents[1] / "java"

RUN_TIMEOUT_S: Final = 60.0


@pytest.mark.timeout(MAVEN_TIMEOUT_S + RUN_TIMEOUT_S)
def test_selectors_of_subscribers_to_a_topic(broker: Broker) -> None:
    libraries = java_libraries(PACKAGE)
    program("javac")  # `java` compiles the file itself, which takes the JDK
    url = f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}/%2f"
    ended = run([program("java"), "-cp", f"{libraries}/*", "Selecting.java", url], cwd=PACKAGE, timeout_s=RUN_TIMEOUT_S)
    assert ended.stdout.decode().splitlines() == [
        "cheap: [cheap car]",
        "typed: [dear car] [cheap boat]",
        "all: [cheap car] [dear car] [cheap boat]",
    ], ended.stderr.decode()
