"""Every kind of record has a class and can be restored, so that no kind is only partly implemented."""

from gateway.kernel.broker.restoring import RESTORE
from gateway.kernel.journal.records.entity import ENTITY_BY_KIND


def test_each_kind_of_record_can_be_restored() -> None:
    built_in = {kind for kind, entity in ENTITY_BY_KIND.items() if entity.__module__.startswith("gateway.")}
    assert set(RESTORE) == built_in  # other tests define kinds of their own


def test_each_kind_is_registered_with_its_slotted_class() -> None:
    for kind, entity in ENTITY_BY_KIND.items():
        assert entity.kind == kind
        assert "__slots__" in vars(entity)  # dataclass replaces the class to add slots
