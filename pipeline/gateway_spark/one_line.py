"""Errors of ours in one line: Spark's workers would add a traceback of a dozen lines of our code.

A worker ends after an error, so a setting in its environment affects nothing else.
"""

import os
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from gateway_spark.errors import PipelineError

P = ParamSpec("P")
T = TypeVar("T")

#: What Spark sets in the environment of its workers: how they reach the JVM.
WORKERS_VARIABLES: Final = ("PYTHON_WORKER_FACTORY_SECRET", "PYTHON_WORKER_FACTORY_SOCK_PATH")

#: With this variable a worker reports an error without its traceback.
HIDING: Final = "SPARK_HIDE_TRACEBACK"


def one_line(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method that Spark calls: our errors are reported without a traceback, others with it."""

    @wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except PipelineError:
            _hide_traceback()
            raise

    return wrapped


def one_line_each(method: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Decorate a generator that Spark calls, in the same way."""

    @wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from method(*args, **kwargs)
        except PipelineError:
            _hide_traceback()
            raise

    return wrapped


def _hide_traceback() -> None:
    if any(name in os.environ for name in WORKERS_VARIABLES):
        os.environ[HIDING] = "1"
