"""Settings of Iceberg tables: addresses, and refusals that begin with the key to change."""

import re
from pathlib import Path

import pytest

from gateway.archive import schemas as check
from gateway.archive.schemas import archive_schemas, check_schemas
from gateway.archive.targets import archive_target, iceberg_address
from gateway.columnar.tables import schema_files
from gateway.columnar.tables.schema_files import typed_tables
from gateway.config import checks
from gateway.config.loading import load
from gateway.kernel.errors import ConfigurationError, GatewayError

ICEBERG = "archive.format=iceberg"
ON_S3 = (ICEBERG, 'archive.warehouse="s3://bucket/a"')

CONTRADICTIONS = [
    (['archive.namespace="other"'], 'archive.namespace: has no effect unless archive.format is "iceberg"'),
    (
        ['archive.directory="s3://bucket/a"'],
        'archive.directory: must be a directory of this machine, not "s3:/bucket/a"',
    ),
    (list(ON_S3), "archive.catalog: must be set with archive.warehouse"),
    ([ICEBERG, 'archive.catalog_properties="s3.region"'], "archive.catalog_properties: must have the form"),
    ([ICEBERG, 'archive.catalog="nowhere"'], "archive.catalog"),
    ([ICEBERG, 'archive.namespace="a.b"'], "archive.namespace"),
    (['archive.redact=["orders $.card"]'], "archive.redact"),
    (['archive.redact=["orders * card"]'], "archive.redact"),
    (['archive.redact=["orders * $.a[0]"]'], "archive.redact"),
    (['audit.redact=["user.* tags"]'], "audit.redact"),
]


@pytest.mark.parametrize(("overrides", "error"), CONTRADICTIONS, ids=[error for _, error in CONTRADICTIONS])
def test_a_contradiction_is_refused_by_its_key(overrides: list[str], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        load(None, overrides)


def test_a_missing_library_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == "pyiceberg" else name)
    with pytest.raises(
        ConfigurationError, match=r"^archive.format: needs pyiceberg: pip install 'gateway-broker\[archive\]'$"
    ):
        load(None, [ICEBERG])


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ('streams.encode="sealed"', "streams.encode"),
        ('vhosts={"/" = {trace_table = true}}', 'vhosts."/".trace_table'),
    ],
)
def test_without_pyarrow_what_needs_it_is_refused(monkeypatch: pytest.MonkeyPatch, setting: str, key: str) -> None:
    load(None, [setting])
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    with pytest.raises(
        ConfigurationError, match=f"^{re.escape(key)}: needs the Python library pyarrow, which is not installed$"
    ):
        load(None, [setting])


def test_the_default_is_the_directory_of_parquet_files() -> None:
    assert archive_target(load(None, ['data="/d"'])) == Path("/d")


def test_without_a_catalogue_it_is_a_file_beside_the_tables() -> None:
    address = iceberg_address(load(None, [ICEBERG, 'data="/d"', 'archive.directory="/a"']))
    assert (address.properties["type"], address.properties["uri"]) == ("sql", "sqlite:////a/iceberg/catalog.db")
    assert address.location_of("archive") == "file:///a/iceberg/archive"


def test_a_rest_catalogue_and_properties() -> None:
    given = ('archive.catalog="https://catalog"', 'archive.catalog_properties="token=a=b,s3.region=x"')
    address = iceberg_address(load(None, [*ON_S3, *given]))
    assert address.properties == {"type": "rest", "uri": "https://catalog", "token": "a=b", "s3.region": "x"}
    assert address.location_of("trace") == "s3://bucket/a/trace"


def test_an_address_with_a_password_may_be_among_the_secret_properties() -> None:
    settings = load(None, [*ON_S3, 'archive.catalog_properties="uri=postgresql+psycopg2://u:p@h/db"'])
    assert iceberg_address(settings).properties["uri"] == "postgresql+psycopg2://u:p@h/db"


def schemas(tmp_path: Path, **contents: str) -> list[str]:
    """Return the overrides for a directory with these files; ``__`` in a name stands for a dot."""
    (tmp_path / "schemas").mkdir()
    for name, content in contents.items():
        (tmp_path / "schemas" / name.replace("__", ".")).write_text(content)
    return [ICEBERG, f'data="{tmp_path}"', f'archive.schemas="{tmp_path}/schemas"']


def test_schemas_need_the_iceberg_format_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r'^archive.schemas: has no effect unless archive.format is "iceberg"$'
    ):
        load(None, [f'archive.schemas="{tmp_path}"'])
    with pytest.raises(ConfigurationError, match=r"^archive.schemas: must be a directory, not"):
        load(None, [ICEBERG, f'archive.schemas="{tmp_path}/missing"'])


def test_the_suffix_of_a_schema_file_tells_the_language(tmp_path: Path) -> None:
    overrides = schemas(tmp_path, a__json="{}", b__avsc="{}", c__binpb="", d__shop__Order__binpb="", __hidden="")
    found = archive_schemas(load(None, overrides))
    assert {name: (file.language, file.message) for name, file in found.items()} == {
        "a": ("json-schema", ""),
        "b": ("avro", ""),
        "c": ("protobuf", ""),
        "d": ("protobuf", "shop.Order"),
    }
    assert list(typed_tables(tmp_path / "schemas")) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("notes__txt", "must be a file TABLE.json"),
        ("archive__json", "'archive' is not the name of a typed table"),
        ("Orders__avsc", "'Orders' is not the name of a typed table"),
        ("orders__v2__json", "the name must have one dot, as orders.json"),
    ],
)
def test_a_schema_file_that_cannot_be_used_is_one_line(tmp_path: Path, name: str, reason: str) -> None:
    settings = load(None, schemas(tmp_path, **{name: "{}"}))
    with pytest.raises(ConfigurationError, match=f"^archive.schemas: .*{reason}") as refused:
        archive_schemas(settings)
    assert "\n" not in str(refused.value)


def test_two_schemas_of_one_table_are_refused(tmp_path: Path) -> None:
    settings = load(None, schemas(tmp_path, orders__json="{}", orders__avsc="{}"))
    with pytest.raises(ConfigurationError, match="the table orders has another schema, "):
        archive_schemas(settings)


def test_a_missing_library_of_a_language_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(None, schemas(tmp_path, orders__avsc="{}"))
    monkeypatch.setattr(schema_files, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"needs a library: pip install 'gateway-broker\[avro\]'$"):
        archive_schemas(settings)


def test_the_check_before_a_start_finds_each_schema_that_is_not_valid(tmp_path: Path) -> None:
    settings = load(None, schemas(tmp_path, a__json='{"type": 5}', b__avsc='"int"', c__binpb="x"))
    with pytest.raises(ConfigurationError) as refused:
        check_schemas(settings)
    first, second = str(refused.value).splitlines()
    assert first.startswith(f"archive.schemas: {tmp_path}/schemas/a.json: not valid at $.type: ")
    assert second.startswith(f"archive.schemas: {tmp_path}/schemas/c.binpb: not a descriptor set")


def test_a_check_that_takes_too_long_is_one_line_and_no_error_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(None, schemas(tmp_path, a__json='{"type": "object"}'))
    monkeypatch.setattr(check, "_LONGEST_S", 0.0)
    with pytest.raises(GatewayError, match=r"the check has not ended within 0 s; start again$") as late:
        check_schemas(settings)
    assert not isinstance(late.value, ConfigurationError)  # a service manager starts the broker again
