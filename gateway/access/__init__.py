"""Who connected, and what they may do."""

from gateway.access.chain import Access, Authenticator, Authorizer
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

__all__ = [
    "Access",
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
    "Operation",
    "Permissions",
    "Principal",
    "Success",
    "TopicPatterns",
    "Visitor",
    "is_loopback",
]
