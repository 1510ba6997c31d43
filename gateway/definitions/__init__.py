"""Definitions in RabbitMQ's format: users, virtual hosts, permissions, topology, policies and parameters."""

from gateway.definitions.applying import apply_definitions, steps_of
from gateway.definitions.model import Definitions, entry_counts
from gateway.definitions.reading import check, checked, parse_definitions, read_definitions, read_document
from gateway.definitions.scanning import scan
from gateway.definitions.validation import RefusedEntry, entry_checks

__all__ = [
    "Definitions",
    "RefusedEntry",
    "apply_definitions",
    "check",
    "checked",
    "entry_checks",
    "entry_counts",
    "parse_definitions",
    "read_definitions",
    "read_document",
    "scan",
    "steps_of",
]
