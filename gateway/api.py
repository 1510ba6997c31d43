"""The public plugin API: the types a plugin implements, the objects it receives and the errors it may raise."""

from gateway import body_formats
from gateway.access import (
    AccessWrapper,
    Answer,
    AuthenticationMethod,
    Authenticator,
    Authorizer,
    CertificateSubject,
    Challenge,
    Credentials,
    Dialogue,
    Failure,
    Operation,
    PasswordCheck,
    Permissions,
    PermissionUnknown,
    Principal,
    Success,
    TopicPatterns,
    Visitor,
)
from gateway.access.passwords import hash_password, verify_password
from gateway.access.scram import ScramCredential, scram_credential
from gateway.hookspecs import TracedVhost, hookimpl
from gateway.kernel.archives.tracer import Tracer
from gateway.kernel.broker.directory import Directory
from gateway.kernel.budget import PendingWork
from gateway.kernel.clock import Timer
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
from gateway.kernel.events import Event
from gateway.kernel.features.plugin_feature import FeatureQueue, QueueFeatureType
from gateway.kernel.features.plugin_feature import PluginFeature as QueueFeature
from gateway.kernel.interception.interceptor import Decision, Diversion, Interceptor, Refusal, RefusalCause
from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Arguments, Message, Properties, Value
from gateway.kernel.messages.origin import Origin
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.feature import Rejection
from gateway.kernel.queueing.queue_like import QueueLike as Queue
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.routing.exchange_type import (
    ExchangeFactory,
    ExchangeType,
    ExchangeTypes,
    KeepingType,
    LongRoute,
)
from gateway.kernel.routing.kept_messages import KeptMessages
from gateway.kernel.routing.topic_trie import TooManyMatches, TopicTrie
from gateway.kernel.settings.offered_settings import QueueSetting
from gateway.kernel.vhosts.event_listeners import EventListener, ObservedVhost
from gateway.kernel.vhosts.metric_source import MetricSample, MetricSource, PluginMetric
from gateway.logs import StructuredLog, log_line
from gateway.plugins.services.ctl_verb import CtlVerb, VerbArgument
from gateway.plugins.services.http_resource import HttpReply, HttpRequest, HttpResource, RequiredPermission
from gateway.plugins.services.ui_panel import PanelColumn, UiPanel
from gateway.plugins.settings import PluginSettings
from gateway.selectors import Selector, SelectorError

__all__ = [
    "AccessRefused",
    "AccessWrapper",
    "Answer",
    "Arguments",
    "AuthenticationMethod",
    "Authenticator",
    "Authorizer",
    "Binding",
    "CertificateSubject",
    "Challenge",
    "CommandInvalid",
    "ConfigurationError",
    "Credentials",
    "CtlVerb",
    "DeathReason",
    "Decision",
    "DeliveryOutcome",
    "Destination",
    "Dialogue",
    "Directory",
    "Diversion",
    "Event",
    "EventListener",
    "Exchange",
    "ExchangeFactory",
    "ExchangeType",
    "ExchangeTypes",
    "Failure",
    "FeatureQueue",
    "GatewayError",
    "HttpReply",
    "HttpRequest",
    "HttpResource",
    "Interceptor",
    "KeepingType",
    "KeptMessages",
    "LongRoute",
    "Message",
    "MetricSample",
    "MetricSource",
    "NotAllowed",
    "NotFound",
    "ObservedVhost",
    "Operation",
    "Origin",
    "PanelColumn",
    "PasswordCheck",
    "PendingWork",
    "PermissionUnknown",
    "Permissions",
    "PluginMetric",
    "PluginSettings",
    "PreconditionFailed",
    "Principal",
    "Properties",
    "Queue",
    "QueueFeature",
    "QueueFeatureType",
    "QueueSetting",
    "QueuedMessage",
    "Refusal",
    "RefusalCause",
    "Refused",
    "Rejection",
    "RequiredPermission",
    "ScramCredential",
    "Selector",
    "SelectorError",
    "StructuredLog",
    "Success",
    "Timer",
    "TooManyMatches",
    "TopicPatterns",
    "TopicTrie",
    "TracedVhost",
    "Tracer",
    "UiPanel",
    "UserRecord",
    "Value",
    "VerbArgument",
    "Visitor",
    "body_formats",
    "hash_password",
    "hookimpl",
    "log_line",
    "scram_credential",
    "verify_password",
]
