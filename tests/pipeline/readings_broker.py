"""A fake broker with given bodies in its one stream, ``weather``."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow

from tests.pipeline.fake_broker import FakeBroker, fake_broker

QUEUE: Final = "weather"


@contextmanager
def broker_with(bodies: Iterable[bytes]) -> Iterator[FakeBroker]:
    """Run a broker whose stream has these bodies."""
    kept = list(bodies)
    with fake_broker() as broker:
        broker.declare(QUEUE, 0, len(kept))
        answer = broker.read

        def read(query: dict[str, str]) -> tuple[int, Any]:
            status, content = answer(query)
            if status != 200:
                return status, content
            first, rows = content
            column = pyarrow.array(kept[first : first + rows.num_rows], pyarrow.binary())
            place = rows.schema.get_field_index("body")
            return status, (first, rows.set_column(place, rows.schema.field("body"), column))

        broker.read = read  # type: ignore[method-assign]
        yield broker
