"""The requests of RabbitMQ's HTTP authentication backend, and their responses: ``allow [tags]`` or ``deny``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from gateway.api import Credentials, Principal, StructuredLog
from gateway_auth.asked.questions import Question, ResourceKind, Verdict
from gateway_auth.http.settings import HttpSettings

if TYPE_CHECKING:
    from gateway_auth.http_client import HttpClient

_log: Final = StructuredLog("access")

PASSWORD_MECHANISMS: Final = frozenset({"PLAIN", "AMQPLAIN"})


class HttpBackend:
    """An authenticator that asks ``user_path``; ``ask`` asks the others."""

    def __init__(self, settings: HttpSettings, vhost: str, client: "HttpClient") -> None:
        self._settings = settings
        self._vhost = vhost
        self._client = client
        self._method = settings.http_method.upper()

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Call ``answer`` when the server has responded; at once for other mechanisms and empty passwords."""
        if credentials.mechanism not in PASSWORD_MECHANISMS or not credentials.password:
            answer(None)
            return
        form = {"username": credentials.username, "password": credentials.password}
        if credentials.client_id:  # a client of MQTT, whose virtual host is known at the login
            form |= {"client_id": credentials.client_id, "vhost": self._vhost}

        def responded(body: bytes | None) -> None:
            tags = None if body is None else _tags_of(body)
            if tags is None:
                answer(None)
            else:
                answer(Principal(credentials.username, tags, credentials.peer_host))

        self._request(self._settings.user_path, form, responded)

    def ask(self, question: Question, answer: Callable[[Verdict], None]) -> None:
        """Ask for a permission."""
        settings, tags = self._settings, " ".join(question.tags)
        form = {"username": question.user, "vhost": question.vhost}
        match question.resource:
            case ResourceKind.VHOST:
                url = settings.vhost_path
                form |= {"ip": question.peer_host, "tags": tags}
            case ResourceKind.TOPIC:
                url = settings.topic_path
                form |= _resource(question) | {"routing_key": question.routing_key, "tags": tags}
                form |= {"variable_map.username": question.user, "variable_map.vhost": question.vhost}
                if question.client_id:
                    form["variable_map.client_id"] = question.client_id
            case _:
                url = settings.resource_path
                form |= _resource(question) | {"tags": tags}
        self._request(url, form, lambda body: answer(None if body is None else _is_allowed(body)))

    def _request(self, url: str | None, form: dict[str, str], answer: Callable[[bytes | None], None]) -> None:
        assert url is not None, "the settings require it"
        encoded = urlencode(form, errors="surrogatepass").encode("ascii")
        self._client.request(self._method, url, encoded, answer)


def _resource(question: Question) -> dict[str, str]:
    return {"resource": question.resource.value, "name": question.name, "permission": question.permission}


def _words(body: bytes) -> list[str]:
    return body.decode("utf-8", "replace").split()


def _tags_of(body: bytes) -> frozenset[str] | None:
    """Return the tags of ``allow [tags]``; ``None`` for ``deny``, and for anything else, which is logged."""
    is_allowed = _is_allowed(body)
    return frozenset(_words(body)[1:]) if is_allowed else None


def _is_allowed(body: bytes) -> Verdict:
    words = _words(body)
    first = words[0].lower() if words else ""
    if first in ("allow", "deny"):
        return first == "allow"
    _log.warning("access server gave an invalid answer", server="auth-http", expected="allow or deny")
    return None
