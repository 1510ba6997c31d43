"""The Celery application of the worker under test: ``celery -A tests.interop.amqp_clients.celery_tasks worker``."""

import os

from celery import Celery, Task

app = Celery("interop", broker=os.environ["INTEROP_AMQP_URL"], backend="rpc://")
app.conf.update(
    task_default_queue=os.environ["INTEROP_QUEUE"],
    task_acks_late=True,
    broker_connection_timeout=5,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"confirm_publish": True},
    result_expires=60,
)


@app.task
def add(x: int, y: int) -> int:
    return x + y


@app.task
def refuse(reason: str) -> None:
    raise ValueError(reason)


@app.task(bind=True, max_retries=3, default_retry_delay=0.1)
def succeed_at_the_third_attempt(self: Task) -> int:
    if self.request.retries < 2:
        raise self.retry()
    return int(self.request.retries) + 1
