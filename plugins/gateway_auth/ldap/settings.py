"""The settings of ``auth-ldap``."""

from typing import Annotated, Self

from pydantic import Field, SecretStr, StringConstraints, field_validator, model_validator

from gateway_auth.asked.settings import AskedSettings
from gateway_auth.ldap.queries import Query, parse_query


class LdapSettings(AskedSettings):
    """The settings of LDAP; many have the names of RabbitMQ's ``auth_ldap``."""

    servers: Annotated[list[Annotated[str, StringConstraints(pattern=r"^ldaps?://\S+$")]], Field(min_length=1)]
    """URLs of the servers, such as ``ldaps://ldap.example.com``; the next one is tried if one does not answer."""

    starttls: bool = False
    """Whether a connection of ``ldap://`` is encrypted before the bind."""

    user_dn_pattern: str = "${username}"
    """The distinguished name of a user; ``${username}`` is replaced."""

    dn_lookup_base: str = ""
    """Where to search for the user's name, instead of ``user_dn_pattern``; empty does not search."""

    dn_lookup_attribute: str = "uid"
    """The attribute that holds the user name in that search."""

    bind_dn: str = ""
    """The user of the search and of queries; empty binds anonymously."""

    bind_password: SecretStr = SecretStr("")
    """Its password."""

    group_lookup_base: str = ""
    """Where groups are; names of groups in queries are relative to it."""

    vhost_access_query: str = "true"
    """Who may use the virtual host."""

    resource_access_query: str = "true"
    """Who has which permission on exchanges and queues."""

    topic_access_query: str = "true"
    """Who may use which routing keys."""

    tag_queries: dict[str, str] = {}
    """The tags of users: each with the query for those who have it."""

    threads: int = Field(default=8, ge=1, le=64)
    """Requests at the same time; others wait."""

    @field_validator("vhost_access_query", "resource_access_query", "topic_access_query")
    @classmethod
    def _is_query(cls, text: str) -> str:
        parse_query(text)
        return text

    @model_validator(mode="after")
    def _tags_have_queries(self) -> Self:
        for text in self.tag_queries.values():
            parse_query(text)
        if self.dn_lookup_base == "" and "${username}" not in self.user_dn_pattern:
            raise ValueError("user_dn_pattern must contain ${username}")
        return self

    def query(self, name: str) -> Query:
        """Return a query by the name of its setting."""
        return parse_query(getattr(self, name))
