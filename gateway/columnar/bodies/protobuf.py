"""Bodies that are messages of a Protobuf type, described by a descriptor set.

``protoc --include_imports --descriptor_set_out=FILE`` writes such a set.
"""

from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gateway.body_formats import descriptor_pool
from gateway.columnar.bodies.body_schema import BodyRefused
from gateway.columnar.bodies.protobuf_columns import message_part
from gateway.kernel.errors import ConfigurationError

#: Characters of a reason that the library gives.
_SHOWN: Final = 200


class ProtobufBodies:
    """The bodies of one message type. Without ``message`` it is the only one of the last file in the set."""

    def __init__(self, descriptor_set: bytes, message: str) -> None:
        """:raises ConfigurationError: if the set is not valid, or does not describe the type."""
        files = _files(descriptor_set)
        pool = descriptor_pool(files)
        name = message or _only_message(files)
        try:
            descriptor = pool.FindMessageTypeByName(name)
        except KeyError:
            raise ConfigurationError(f"the descriptor set has no message {name!r}") from None
        self._name = name
        self._type: type[Message] = GetMessageClass(descriptor)
        self._kind, self._convert = message_part(descriptor, frozenset())

    @property
    def kind(self) -> pa.DataType:
        """The type of bodies."""
        return self._kind

    def decode(self, body: bytes) -> Any:
        """Return the value of a body. :raises BodyRefused: if it is not a message of the type."""
        message = self._type()
        try:
            message.MergeFromString(body)
        except DecodeError as error:
            raise BodyRefused(f"not a {self._name}: {str(error)[:_SHOWN]}") from None
        if not message.IsInitialized():
            missing = message.FindInitializationErrors()  # type: ignore[attr-defined]  # the stubs lack it
            raise BodyRefused(f"required fields are missing: {', '.join(missing)[:_SHOWN]}")
        return self._convert(message)


def _files(descriptor_set: bytes) -> FileDescriptorSet:
    try:
        files = FileDescriptorSet.FromString(descriptor_set)
    except DecodeError:
        raise ConfigurationError("not a descriptor set, as protoc --descriptor_set_out writes it") from None
    if not files.file:
        raise ConfigurationError("the descriptor set is empty")
    return files


def _only_message(files: FileDescriptorSet) -> str:
    last = files.file[-1]
    if len(last.message_type) != 1:
        raise ConfigurationError(
            f"{last.name} has {len(last.message_type)} messages: name one in the name of the file, as in "
            "orders.shop.Order.binpb"
        )
    return ".".join(filter(None, (last.package, last.message_type[0].name)))
