"""Reading bodies in Avro, JSON and Protobuf within bounds: what checks of bodies and typed tables have in common."""

from gateway.body_formats.avro_body import AvroBody
from gateway.body_formats.descriptor_set import descriptor_pool
from gateway.body_formats.json_body import DEEPEST_JSON, fetch_no_schema, is_deep_json, json_place

__all__ = ["DEEPEST_JSON", "AvroBody", "descriptor_pool", "fetch_no_schema", "is_deep_json", "json_place"]
