"""docs/storage.md describes every module, table and call."""

from dataclasses import fields
from pathlib import Path

import gateway_jetstream
import gateway_lmdb
from gateway.kernel.journal.store import Store, StoreListener
from gateway.testing.store import StorePlace
from gateway_lmdb.schema import Tables

TEXT = (Path(__file__).parents[2] / "docs" / "storage.md").read_text(encoding="utf-8")


def test_every_module_and_table_of_the_lmdb_engine_is_described() -> None:
    modules = {path.stem for path in Path(gateway_lmdb.__file__).parent.glob("*.py")} - {"__init__"}
    assert {name for name in modules | {field.name for field in fields(Tables)} if f"`{name}`" not in TEXT} == set()


def test_every_module_of_the_engine_of_several_nodes_is_described() -> None:
    modules = {path.stem for path in Path(gateway_jetstream.__file__).parent.glob("*/*.py")} - {"__init__"}
    assert {name for name in modules if f"`{name}`" not in TEXT} == set()


def test_every_call_and_report_of_the_port_is_described() -> None:
    calls = {name for port in (Store, StoreListener, StorePlace) for name in vars(port) if not name.startswith("_")}
    assert {name for name in calls if f"`{name}" not in TEXT and f"def {name}" not in TEXT} == set()
