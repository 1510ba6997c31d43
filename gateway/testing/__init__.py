"""Test support for plugins and storage engines."""

from gateway.testing.access import (
    check_access_wrapper,
    check_authentication_method,
    check_authenticator,
    check_authorizer,
)
from gateway.testing.broker import MemoryBroker, Received, Recipient, header_of
from gateway.testing.broker_handle import TestBroker
from gateway.testing.clock import FakeClock
from gateway.testing.embedded import Gateway
from gateway.testing.event_listener import StandInObservedVhost, check_event_listener
from gateway.testing.exchange_type import StandIn, check_exchange_type, plain_message, stand_in_binding
from gateway.testing.interceptor import check_interceptor
from gateway.testing.metric_source import check_metric_source
from gateway.testing.queue_feature import check_queue_feature
from gateway.testing.services import check_ctl_verb, check_http_resource, check_ui_panel, sample_request
from gateway.testing.store import StorePlace, check_store
from gateway.testing.tracer import StandInVhost, check_tracer

__all__ = [
    "FakeClock",
    "Gateway",
    "MemoryBroker",
    "Received",
    "Recipient",
    "StandIn",
    "StandInObservedVhost",
    "StandInVhost",
    "StorePlace",
    "TestBroker",
    "check_access_wrapper",
    "check_authentication_method",
    "check_authenticator",
    "check_authorizer",
    "check_ctl_verb",
    "check_event_listener",
    "check_exchange_type",
    "check_http_resource",
    "check_interceptor",
    "check_metric_source",
    "check_queue_feature",
    "check_store",
    "check_tracer",
    "check_ui_panel",
    "header_of",
    "plain_message",
    "sample_request",
    "stand_in_binding",
]
