"""Operations of ``gateway repair`` on a store that no broker has open."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb import quarantine
from gateway_lmdb.compaction import compact_closed
from gateway_lmdb.environment import FILE, Environment
from gateway_lmdb.inspection import require_sound
from gateway_lmdb.quarantine import Quarantined
from gateway_lmdb.schema import Tables, Transaction


def set_aside_in(data: Path) -> list[Quarantined]:
    """Return all records in quarantine. :raises StorageError: when there is no store, or it is in use."""
    with _opened(data) as environment, environment.read() as transaction:
        return list(quarantine.all_quarantined(transaction, environment.tables))


def drop_from(data: Path, numbers: Sequence[int]) -> int:
    """Delete records from quarantine, all when no number is given; return how many.

    Numbers are positions in the list, from 1. :raises StorageError: for an unknown number, or without a store.
    """
    return _each(data, numbers, quarantine.drop)


def put_back_in(data: Path, numbers: Sequence[int]) -> int:
    """Move records back to their tables, to be tried at the next start; return how many.

    A record stays in quarantine if a newer one with its key exists. Otherwise as ``drop_from``.
    """
    return _each(data, numbers, quarantine.put_back)


def _each(data: Path, numbers: Sequence[int], do: Callable[[Transaction, Tables, Quarantined], bool | None]) -> int:
    with _opened(data) as environment, environment.write() as transaction:
        found = list(quarantine.all_quarantined(transaction, environment.tables))
        for number in numbers:
            if not 1 <= number <= len(found):
                raise StorageError(f"there is no record {number} in quarantine, which holds {len(found)} records")
        chosen = [found[number - 1] for number in sorted(set(numbers))] if numbers else found
        return sum(do(transaction, environment.tables, aside) is not False for aside in chosen)


def compact_file(data: Path, show: Callable[[int, int], None]) -> tuple[int, int]:
    """Compact the file; return its size before and after.

    ``show`` is called about once a second with the bytes copied and their approximate total.

    :raises StorageError: when there is no store, it is in use, or it cannot be copied.
    """
    with _opened(data) as environment:
        return compact_closed(environment, show)


def check_pages(data: Path) -> int:
    """Check every page in use; return their number. :raises StorageError: when one is damaged."""
    with _opened(data):
        return require_sound(data / FILE)


@contextmanager
def _opened(data: Path) -> Iterator[Environment]:
    if not (data / FILE).is_file():
        raise StorageError(f"there is no store in {data}")
    environment = Environment(data)
    try:
        yield environment
    except lmdb.Error as error:
        raise StorageError(f"the store in {data} cannot be repaired: {error}") from error
    finally:
        environment.close()
