"""The languages of schemas: opens a schema file with the library of its language."""

from gateway.columnar.bodies.body_schema import BodySchema
from gateway.columnar.tables.schema_files import AVRO, JSON_SCHEMA, SchemaFile


def open_schema(file: SchemaFile) -> BodySchema:
    """Return the schema of a file. :raises ConfigurationError: in one line if it is not valid."""
    # Each library is imported only if a schema needs it.
    if file.language == JSON_SCHEMA:
        from gateway.columnar.bodies.json_schema import JsonBodies

        return JsonBodies(file.content)
    if file.language == AVRO:
        from gateway.columnar.bodies.avro import AvroBodies

        return AvroBodies(file.content)
    from gateway.columnar.bodies.protobuf import ProtobufBodies

    return ProtobufBodies(file.content, file.message)
