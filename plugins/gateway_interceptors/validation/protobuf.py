"""interceptor-protobuf: refuses bodies that are not a message of a Protobuf type, or diverts them to quarantine.

Needs the library ``protobuf``: ``pip install 'gateway-broker[protobuf]'``.
"""

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from gateway.api import (
    ConfigurationError,
    Interceptor,
    MetricSource,
    PluginSettings,
    TracedVhost,
    body_formats,
    hookimpl,
)
from gateway_interceptors.validation.validation import Complaint, ValidationRule, Validations, file_content, missing

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool

_validations: Final = Validations()


class ProtobufRule(ValidationRule):
    """The type of the messages that are published to one exchange."""

    message: str
    """The full name of the type, such as ``shop.Order``."""

    descriptor_file: str = ""
    """A descriptor set, as written by ``protoc --include_imports --descriptor_set_out=FILE``. It is read when the
    plugin is enabled or reloaded."""

    descriptor_set: str = ""
    """The content of such a file instead, in base64."""

    unknown_fields: Literal["accept", "refuse"] = "accept"
    """Whether a body may have fields that the type does not have, as those of a later version of it."""


class ProtobufSettings(PluginSettings):
    """The settings of ``interceptor-protobuf``."""

    rules: list[ProtobufRule] = []
    """The rules; the first that matches a message applies, and a message without a rule passes."""


def complaint_of(rule: ProtobufRule) -> Complaint:
    """Return the check of a type. :raises ConfigurationError: if it is not described, or the library is missing."""
    try:
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass
    except ImportError:
        raise missing("protobuf", "protobuf") from None
    pool = _pool(_content(rule))
    try:
        kind = GetMessageClass(pool.FindMessageTypeByName(rule.message))
    except KeyError:
        raise ConfigurationError(f"the descriptor set has no message {rule.message!r}") from None

    def complaint(body: bytes) -> str:
        message = kind()
        try:
            message.MergeFromString(body)
        except DecodeError:
            return f"it is not a {rule.message}"
        if not message.IsInitialized():
            fields = message.FindInitializationErrors()  # type: ignore[attr-defined]  # the stubs lack it
            return f"required fields are missing: {', '.join(fields)}"
        if rule.unknown_fields == "refuse":
            size = message.ByteSize()
            message.DiscardUnknownFields()
            if message.ByteSize() != size:
                return f"it has fields that {rule.message} does not have"
        return ""

    return complaint


def _content(rule: ProtobufRule) -> bytes:
    """Return the encoded descriptor set of a rule."""
    if bool(rule.descriptor_file) == bool(rule.descriptor_set):
        raise ConfigurationError("one of 'descriptor_file' and 'descriptor_set' is needed")
    if rule.descriptor_file:
        return file_content(Path(rule.descriptor_file), "descriptor_file")
    try:
        return base64.b64decode(rule.descriptor_set, validate=True)
    except binascii.Error:
        raise ConfigurationError("'descriptor_set' is not base64") from None


def _pool(content: bytes) -> "DescriptorPool":
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        files = FileDescriptorSet.FromString(content)
    except DecodeError:
        raise ConfigurationError("this is not a descriptor set, as protoc --descriptor_set_out writes it") from None
    return body_formats.descriptor_pool(files)


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the rules."""
    return ProtobufSettings


@hookimpl
def gateway_interceptors(vhost: TracedVhost, settings: ProtobufSettings) -> Sequence[Interceptor]:
    """Offer the interceptor. :raises ConfigurationError: if there is no rule, or a type is not described."""
    return _validations.interceptors(vhost.name, settings.rules, complaint_of)


@hookimpl
def gateway_metrics(vhost: str) -> Sequence[MetricSource]:
    """Offer the numbers of checked and of invalid messages."""
    return _validations.metric_sources(vhost)
