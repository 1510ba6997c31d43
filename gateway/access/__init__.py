"""Authentication and authorization of clients."""

from gateway.access.authorities import Authenticator, Authorizer
from gateway.access.call_times import AccessCalls
from gateway.access.chain import Access
from gateway.access.hashing import HashingThreads
from gateway.access.methods import (
    Answer,
    AuthenticationMethod,
    Challenge,
    Dialogue,
    Failure,
    GuardedDialogue,
    Success,
    Visitor,
)
from gateway.access.permissions import Operation, Permissions, TopicPatterns
from gateway.access.principals import CertificateSubject, Credentials, Principal, is_loopback
from gateway.access.throttle import LoginThrottle, ThrottleRules
from gateway.access.unknown import PermissionUnknown
from gateway.access.verifying import PasswordCheck, PasswordVerifier
from gateway.access.vhost_permissions import VhostPermissions
from gateway.access.wrapping import AccessWrapper

__all__ = [
    "Access",
    "AccessCalls",
    "AccessWrapper",
    "Answer",
    "AuthenticationMethod",
    "Authenticator",
    "Authorizer",
    "CertificateSubject",
    "Challenge",
    "Credentials",
    "Dialogue",
    "Failure",
    "GuardedDialogue",
    "HashingThreads",
    "LoginThrottle",
    "Operation",
    "PasswordCheck",
    "PasswordVerifier",
    "PermissionUnknown",
    "Permissions",
    "Principal",
    "Success",
    "ThrottleRules",
    "TopicPatterns",
    "VhostPermissions",
    "Visitor",
    "is_loopback",
]
