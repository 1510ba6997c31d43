"""Definitions in RabbitMQ's format: users, virtual hosts, permissions, topology, policies and parameters."""

from gateway.definitions.applying import apply_definitions, steps_of
from gateway.definitions.model import Definitions
from gateway.definitions.reading import parse_definitions, read_definitions

__all__ = ["Definitions", "apply_definitions", "parse_definitions", "read_definitions", "steps_of"]
