"""Types of Protobuf from a descriptor set, as ``protoc --include_imports --descriptor_set_out=FILE`` writes it."""

from typing import TYPE_CHECKING

from gateway.kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool


def descriptor_pool(files: "FileDescriptorSet") -> "DescriptorPool":
    """Return the types of a descriptor set, which has each file after those that it imports.

    :raises ConfigurationError: if a file is missing or not valid.
    """
    from google.protobuf.descriptor_pool import DescriptorPool  # an optional library

    pool = DescriptorPool()
    known: set[str] = set()
    for file in files.file:
        if lacking := [name for name in file.dependency if name not in known]:
            raise ConfigurationError(f"the descriptor set lacks {lacking[0]!r}: use protoc --include_imports")
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise ConfigurationError(f"the descriptor set is not valid: {error}") from None
        known.add(file.name)
    return pool
