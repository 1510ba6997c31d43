"""Who connected, and what they may do."""

from gateway.access.chain import Access, Authenticator, Authorizer
from gateway.access.permissions import Operation, Permissions, TopicPatterns
from gateway.access.principals import CertificateSubject, Credentials, Principal, is_loopback

__all__ = [
    "Access",
    "Authenticator",
    "Authorizer",
    "CertificateSubject",
    "Credentials",
    "Operation",
    "Permissions",
    "Principal",
    "TopicPatterns",
    "is_loopback",
]
