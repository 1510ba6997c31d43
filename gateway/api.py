"""Everything a plugin may import: what it implements, what it is given, and what it may raise."""

from gateway.access import (
    Authenticator,
    Authorizer,
    CertificateSubject,
    Credentials,
    Operation,
    Permissions,
    Principal,
    TopicPatterns,
)
from gateway.hookspecs import TracedVhost, hookimpl
from gateway.kernel.binding import Binding, Destination
from gateway.kernel.directory import Directory
from gateway.kernel.errors import (
    AccessRefused,
    CommandInvalid,
    ConfigurationError,
    GatewayError,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    Refused,
)
from gateway.kernel.exchange import Exchange
from gateway.kernel.message import Arguments, Message, Properties, Value
from gateway.kernel.ports import ExchangeFactory, ExchangeType, ExchangeTypes, Origin, Tracer
from gateway.kernel.queue import Queue
from gateway.kernel.topics import TopicTrie
from gateway.passwords import hash_password, verify_password

__all__ = [
    "AccessRefused",
    "Arguments",
    "Authenticator",
    "Authorizer",
    "Binding",
    "CertificateSubject",
    "CommandInvalid",
    "ConfigurationError",
    "Credentials",
    "Destination",
    "Directory",
    "Exchange",
    "ExchangeFactory",
    "ExchangeType",
    "ExchangeTypes",
    "GatewayError",
    "Message",
    "NotAllowed",
    "NotFound",
    "Operation",
    "Origin",
    "Permissions",
    "PreconditionFailed",
    "Principal",
    "Properties",
    "Queue",
    "Refused",
    "TopicPatterns",
    "TopicTrie",
    "TracedVhost",
    "Tracer",
    "Value",
    "hash_password",
    "hookimpl",
    "verify_password",
]
