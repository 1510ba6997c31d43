"""Celery tasks whose pauses are the broker's: retries with growing pauses, and delayed tasks.

Celery's own retries and countdowns keep waiting tasks in the memory of a worker. Here they wait in the broker, on disk.
"""

import os
from collections import Counter

from celery import Celery, Task
from celery.exceptions import Reject
from celery.signals import worker_ready
from kombu import Exchange, Queue

#: The pauses before a rejected task comes again, in milliseconds. After the last one it is dropped, or dead-lettered.
PAUSES_MS = [200, 1000, 5000]

#: The time until a customer is reminded, in milliseconds.
REMINDER_MS = 2000

app = Celery("tasks", broker=os.environ.get("AMQP_URL", "amqp://127.0.0.1:5672"))
exchange = Exchange("billing", "x-delayed-message", arguments={"x-delayed-type": "direct"})
app.conf.update(
    task_queues=[Queue("billing", exchange, "billing", queue_arguments={"x-retry-delays": PAUSES_MS})],
    task_default_queue="billing",
    task_default_exchange="billing",
    task_default_exchange_type="x-delayed-message",
    task_default_routing_key="billing",
    task_acks_late=True,  # acknowledged when it is done: the task of a worker that dies goes to another one
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    worker_redirect_stdouts=False,  # what tasks print is not log
    broker_connection_retry_on_startup=True,
)

attempts: Counter[str] = Counter()


@app.task(bind=True)
def charge(self: Task, customer: str) -> None:
    """Charge a customer; the service of the bank answers at the third attempt."""
    attempts[customer] += 1
    print("charge", customer, "attempt", attempts[customer], flush=True)
    if attempts[customer] < 3:
        raise Reject("the bank does not answer", requeue=False)  # the broker returns it after a pause
    remind.apply_async([customer], headers={"x-delay": REMINDER_MS})  # it waits at the exchange


@app.task
def remind(customer: str) -> None:
    """Remind a customer."""
    print("remind", customer, flush=True)


@worker_ready.connect
def say_ready(**_: object) -> None:
    """Say that the worker consumes."""
    print("waiting", flush=True)
