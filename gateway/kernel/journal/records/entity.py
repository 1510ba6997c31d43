"""The base of durable entities, which are put as a whole and removed by key, and the table of their kinds."""

from dataclasses import dataclass, fields
from typing import ClassVar, Final, Self

from gateway.kernel.messages import values
from gateway.kernel.messages.message import Value

#: Kind of record to its class. A subclass of ``Entity`` adds itself; ``broker/restoring.py`` restores each kind.
ENTITY_BY_KIND: Final[dict[str, type["Entity"]]] = {}


@dataclass(frozen=True, slots=True)
class Entity:
    """Base of the records that are put and removed as a whole.

    ``kind`` names the table, ``version`` its layout: a store with a newer version refuses to start, an older one is
    upgraded by ``from_fields``. Fields hold only ``Value``s. The first ``key_width`` fields are the key.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    key_width: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        ENTITY_BY_KIND[cls.kind] = cls  # called twice for a class with slots; the second one is in use

    @property
    def messages_id(self) -> int:
        """The number under which the store keeps the entity's messages; 0 if it has none."""
        return 0

    @property
    def key(self) -> tuple[Value, ...]:
        """The fields that identify the entity among those of its kind."""
        return tuple([getattr(self, name) for name in _names_of(type(self))[: self.key_width]])

    def to_fields(self) -> dict[str, Value]:
        """Return the fields by name, ready for ``values.dumps``."""
        return {name: getattr(self, name) for name in _names_of(type(self))}

    def encoded(self) -> bytes:
        """Return the fields as ``values.dumps`` writes them."""
        return values.dumps(self.to_fields())

    @classmethod
    def from_fields(cls, fields: dict[str, Value], version: int) -> Self:
        """Build an entity from fields of layout ``version``; a newer layout overrides this to upgrade older ones."""
        return cls(**fields)


#: The names of the fields of each kind of entity.
_NAMES: Final[dict[type[Entity], tuple[str, ...]]] = {}


def _names_of(kind: type[Entity]) -> tuple[str, ...]:
    """Return the names of the fields of a kind of entity."""
    names = _NAMES.get(kind)
    if names is None:
        names = _NAMES[kind] = tuple(field.name for field in fields(kind))
    return names
