"""Settings of streams and of the archive."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from gateway.config.kinds import Allowed, BodyRules, OptionalPath, Password, Size
from gateway.config.section import Section


class Streams(Section):
    """Queues of the type ``stream``."""

    segment_size: Annotated[Size, Field(ge=64 * 2**10, le=3 * 10**9)] = 32 * 2**20
    """Size at which a segment of a stream is closed; a queue argument or a policy may set another."""

    encode: Literal["read", "sealed"] = "read"
    """Which segments are also stored in columns: those that the pipeline has ``read``, or every ``sealed`` one."""


class ArchiveSettings(Section):
    """The archive of messages that policies with ``archive`` select, and the trace table of message events."""

    directory: OptionalPath = None
    """Directory of the tables ``archive`` and ``trace``; ``""`` is the data directory."""

    format: Literal["parquet", "iceberg"] = "parquet"
    """Format of the tables: ``parquet`` files, or Apache ``iceberg`` with ``pip install 'gateway-broker[archive]'``."""

    warehouse: Annotated[
        str,
        Field(pattern=r"^([a-z][a-z0-9]*://[^\s?#]+)?$", max_length=1000),
        Allowed('a URI such as "s3://bucket/prefix", or ""'),
    ] = ""
    """Where the Iceberg tables are; ``""`` is the directory ``iceberg`` in ``directory``."""

    catalog: Annotated[
        str,
        Field(pattern=r"^([a-z][a-z0-9+]*://\S+)?$", max_length=1000),
        Allowed('a URL such as "https://catalog.example.com" or "postgresql+psycopg2://host/db", or ""'),
    ] = ""
    """Catalogue of the Iceberg tables, by REST or in a database; ``""`` is a SQLite file beside the tables."""

    catalog_properties: Password = SecretStr("")
    """Further properties of the catalogue and of the object store in pyiceberg's names: ``name=value,name=value``."""

    namespace: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9_]{1,100}$"), Allowed("1 to 100 letters, digits and underscores")
    ] = "gateway"
    """Namespace of the Iceberg tables in the catalogue; each broker needs its own."""

    schemas: OptionalPath = None
    """Directory of schemas of message bodies, one file for each typed Iceberg table; ``""`` for none."""

    snapshots: Annotated[int, Field(ge=10, le=100_000)] = 200
    """Snapshots that an Iceberg table keeps; each file of the archive adds one, and a commit takes longer with more."""

    segment_size: Annotated[Size, Field(ge=64 * 2**10, le=2**30)] = 64 * 2**20
    """Amount of data of one exchange or queue that is collected before it is written as a file."""

    segment_age_s: Annotated[int, Field(ge=1, le=86400)] = 300
    """Longest time that data is collected for one file, in seconds; a file never spans two days in UTC."""

    redact: BodyRules = Field(default_factory=list)
    """Parts of bodies that are replaced by ``***`` before they are written: exchange or queue, routing key, path."""

    max_backlog: Annotated[Size, Field(ge=2**20, le=10**12)] = 512 * 2**20
    """Data of one exchange or queue that may wait to be written before its publishers are blocked."""


def catalogue_properties(archive: ArchiveSettings) -> dict[str, str]:
    """Return the further properties of the catalogue by name."""
    pairs = (pair.partition("=") for pair in archive.catalog_properties.get_secret_value().split(",") if pair)
    return {name: value for name, _, value in pairs}


class Traces(Section):
    """The traces of messages, which each virtual host keeps in memory."""

    sample: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of messages that is traced from the start, from 0 (off) to 1."""

    max_messages: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    """Traces that a virtual host keeps; the oldest is dropped for a later one."""

    max_bytes: Annotated[Size, Field(ge=2**16, le=10**12)] = 32 * 2**20
    """Memory of the traces of a virtual host, estimated."""

    max_file_size: Annotated[Size, Field(ge=2**16, le=10**12)] = 100 * 2**20
    """Size of a file that ``/api/traces`` writes; a full file gets no more lines."""
