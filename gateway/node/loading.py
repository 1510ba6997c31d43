"""The file ``load_definitions``, which a starting node applies."""

from collections.abc import Iterator
from pathlib import Path

from gateway.definitions import check, read_definitions, read_document, steps_of
from gateway.kernel.broker.broker import Broker
from gateway.node.audit import record_definitions
from gateway.node.cell_place import CellPlace


def loading(file: Path, default_vhost: str, broker: Broker, place: CellPlace | None) -> Iterator[None]:
    """Return the steps that apply a file of definitions; in a cluster with several cells, the part of this one.

    :raises ConfigurationError: if the file is invalid, or the broker refuses an entry.
    """
    definitions, elsewhere = read_definitions(file), set[str]()
    record_definitions(broker.audit, definitions, file)
    if place is not None:
        part = yield from place.sharing(read_document(file), default_vhost)
        elsewhere = part.elsewhere
        definitions = yield from check(part.own, str(file))
    yield from steps_of(definitions, broker, str(file), default_vhost, elsewhere)
