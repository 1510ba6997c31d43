"""Settings of Iceberg tables: addresses, and refusals that begin with the key to change."""

from pathlib import Path

import pytest

from gateway.archive.targets import archive_target, iceberg_address
from gateway.config import checks
from gateway.config.loading import load
from gateway.kernel.errors import ConfigurationError

ICEBERG = "archive.format=iceberg"
ON_S3 = (ICEBERG, 'archive.warehouse="s3://bucket/a"')

CONTRADICTIONS = [
    (['archive.namespace="other"'], 'archive.namespace: has no effect unless archive.format is "iceberg"'),
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
