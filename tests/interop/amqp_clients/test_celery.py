"""A Celery worker process: tasks, results, and remote control by broadcast."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from celery import Celery, chain, group

from tests.interop.broker import PROJECT, Broker

APPLICATION: Final = "tests.interop.amqp_clients.celery_tasks"
WORKER_START_TIMEOUT_S: Final = 30.0
RESULT_TIMEOUT_S: Final = 15.0


@pytest.fixture(scope="module")
def tasks(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the tasks module while a worker process serves it; a warm shutdown must succeed."""
    environment = {
        "INTEROP_AMQP_URL": f"{broker.url}?heartbeat=10",
        "INTEROP_QUEUE": f"interop-celery-{uuid.uuid4().hex[:12]}",
    }
    os.environ.update(environment)
    from tests.interop.amqp_clients import celery_tasks  # it reads the environment on import

    log = tmp_path_factory.mktemp("celery") / "worker.log"
    command = [sys.executable, "-m", "celery", "-A", APPLICATION, "worker", "--pool", "solo", "--loglevel", "info"]
    with log.open("wb") as output:
        worker = subprocess.Popen(command, cwd=PROJECT, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_ready(celery_tasks.app, worker, log)
        yield celery_tasks
    finally:
        worker.send_signal(signal.SIGTERM)
        exit_code = worker.wait(20)
        with celery_tasks.app.connection_for_write() as connection:
            connection.default_channel.queue_delete(environment["INTEROP_QUEUE"])
            connection.default_channel.exchange_delete(environment["INTEROP_QUEUE"])
        for variable in environment:
            del os.environ[variable]
    assert exit_code == 0, log.read_text()


def _wait_until_ready(app: Celery, worker: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + WORKER_START_TIMEOUT_S
    while not app.control.ping(timeout=0.5):
        assert worker.poll() is None, f"the worker stopped:\n{log.read_text()}"
        assert time.monotonic() < deadline, f"the worker does not answer:\n{log.read_text()}"


def test_a_task_is_executed_and_returns_its_result(tasks: Any) -> None:
    assert tasks.add.delay(2, 3).get(timeout=RESULT_TIMEOUT_S) == 5


def test_an_exception_in_a_task_is_returned(tasks: Any) -> None:
    with pytest.raises(ValueError, match="not today"):
        tasks.refuse.delay("not today").get(timeout=RESULT_TIMEOUT_S)


def test_a_retried_task_succeeds_in_the_end(tasks: Any) -> None:
    assert tasks.succeed_at_the_third_attempt.delay().get(timeout=RESULT_TIMEOUT_S) == 3


def test_a_group_collects_all_results(tasks: Any) -> None:
    results = group(tasks.add.s(number, 1) for number in range(20)).apply_async()
    assert results.get(timeout=RESULT_TIMEOUT_S) == list(range(1, 21))


def test_a_chain_passes_each_result_to_the_next_task(tasks: Any) -> None:
    assert chain(tasks.add.s(1, 2), tasks.add.s(10), tasks.add.s(100))().get(timeout=RESULT_TIMEOUT_S) == 113


def test_a_task_with_a_countdown_runs_no_earlier(tasks: Any) -> None:
    started = time.monotonic()
    assert tasks.add.apply_async((1, 1), countdown=1).get(timeout=RESULT_TIMEOUT_S) == 2
    assert time.monotonic() - started >= 1


def test_the_worker_answers_remote_control(tasks: Any) -> None:
    (registered,) = tasks.app.control.inspect(timeout=2).registered().values()
    assert f"{APPLICATION}.add" in registered
