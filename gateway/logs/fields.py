"""The fields of a log record, beside its event."""

import logging
from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = "gateway_fields"
"""The attribute of a ``logging.LogRecord`` that holds the fields."""


def fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the fields of a record; records of other libraries have none."""
    fields: Mapping[str, Any] = getattr(record, FIELDS, {})
    return fields
