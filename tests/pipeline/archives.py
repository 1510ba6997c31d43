"""Archives with the broker's layout, written by pyarrow from test rows."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow
import pyarrow.parquet
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from gateway_spark.manifest import append
from gateway_spark.schema import MESSAGE_SCHEMA
from tests.pipeline.frames import USUAL, after

MS: Final = 1000


def write_file(
    root: Path,
    rows: Iterable[Mapping[str, Any]],
    *,
    first: int = 0,
    vhost: str = "/",
    name: str = "readings",
    listed: bool = True,
    extra: Mapping[str, Any] | None = None,
    schema: StructType = MESSAGE_SCHEMA,
) -> Path:
    """Write one file and its manifest line; the rows get offsets from ``first`` on, one second apart.

    ``extra`` contains further fields of the line.
    """
    filled = [_filled(first + number, vhost, row) for number, row in enumerate(rows)]
    day = filled[0]["timestamp"].date().isoformat()
    directory = root / f"vhost={quote(vhost, safe='')}" / f"date={day}"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}-{first:020}-{first + len(filled):020}.parquet"
    table = pyarrow.Table.from_pylist(filled, schema=to_arrow_schema(schema, timezone="UTC"))
    pyarrow.parquet.write_table(table, path, compression="zstd")
    if listed:
        append(path.parent, {**_line(path, filled), **(extra or {})})
    return path


def _filled(offset: int, vhost: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {**USUAL, "vhost": vhost, "offset": offset, "timestamp": after(seconds=offset), **row}


def _line(path: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    times = [int(row["timestamp"].timestamp() * MS) for row in rows]
    size = path.stat().st_size
    return {"file": path.name, "rows": len(rows), "bytes": size, "first_ms": min(times), "last_ms": max(times)}
