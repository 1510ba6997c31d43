"""What the specifications of STOMP 1.0, 1.1 and 1.2 say of a server, sentence by sentence, and where each has a row.

The specifications do not number anything, so a statement is told by the section it stands in (of 1.2, where there is
one) and its sense in a few words. A test names the statements it shows with ``states`` or ``rows`` of ``tables.py``;
those are collected in ``shown``.
"""

from collections.abc import Mapping
from typing import Final

_STATEMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    # section: statement: the versions it holds for
    "STOMP Frames": {
        "a command, headers, a blank line, a body, a NULL octet": "1.0 1.1 1.2",
        "the NULL octet may be followed by ends of lines": "1.0 1.1 1.2",
        "a line may end with a carriage return and a line feed": "1.2",
        "commands and headers are case sensitive": "1.1 1.2",
    },
    "Value Encoding": {
        "commands and headers are UTF-8": "1.1 1.2",
        "nothing is escaped": "1.0",
        "decoding translates \\n, \\c and \\\\": "1.1 1.2",
        "decoding translates \\r": "1.2",
        "an undefined escape is fatal": "1.1 1.2",
        "encoding does the reverse": "1.1 1.2",
        "CONNECT and CONNECTED escape nothing": "1.1 1.2",
        "headers are neither trimmed nor padded": "1.1 1.2",
        "headers may be padded": "1.0",
    },
    "Body": {
        "only SEND, MESSAGE and ERROR have one": "1.1 1.2",
        "that of SUBSCRIBE is ignored": "1.0",
    },
    "Header content-length": {
        "so many octets are read, whatever they are": "1.0 1.1 1.2",
        "a NULL octet still follows": "1.0 1.1 1.2",
        "without it the first NULL octet ends the frame": "1.0 1.1 1.2",
        "MESSAGE and ERROR with a body have it": "1.0 1.1 1.2",
    },
    "Header content-type": {
        "MESSAGE and ERROR with a body should have it": "1.1 1.2",
    },
    "Header receipt": {
        "any frame but CONNECT may have it, and RECEIPT answers": "1.0 1.1 1.2",
    },
    "Repeated Header Entries": {
        "only the first one counts": "1.1 1.2",
    },
    "Size Limits": {
        "too many headers: ERROR, then close": "1.1 1.2",
        "too long headers: ERROR, then close": "1.1 1.2",
        "too large a body: ERROR, then close": "1.1 1.2",
    },
    "Connecting": {
        "CONNECTED answers a CONNECT that is accepted": "1.0 1.1 1.2",
        "ERROR answers one that is rejected, then close": "1.1 1.2",
        "STOMP is handled as CONNECT": "1.1 1.2",
        "a virtual host that is not known may be rejected": "1.1 1.2",
        "login and passcode authenticate": "1.0 1.1 1.2",
    },
    "CONNECTED Frame": {
        "version is set": "1.1 1.2",
        "session is unique": "1.0 1.1 1.2",
        "server is a name and may have a version": "1.1 1.2",
    },
    "Protocol Negotiation": {
        "the highest version in common is used": "1.1 1.2",
        "without accept-version it is 1.0": "1.0",
        "nothing in common: ERROR with versions, then close": "1.1 1.2",
    },
    "Heart-beating": {
        "CONNECTED says what the server does and wants": "1.1 1.2",
        "none in CONNECT is 0,0": "1.1 1.2",
        "it is two numbers": "1.1 1.2",
        "the server sends something in time": "1.1 1.2",
        "a client that is silent may be taken for dead": "1.1 1.2",
        "any data shows that a client is alive": "1.1 1.2",
    },
    "Client Frames": {
        "an unknown frame may be answered by ERROR, then close": "1.1 1.2",
    },
    "SEND": {
        "destination is required": "1.0 1.1 1.2",
        "transaction makes it transactional": "1.0 1.1 1.2",
        "the user's headers are passed through in MESSAGE": "1.0 1.1 1.2",
        "what cannot be processed: ERROR, then close": "1.1 1.2",
    },
    "SUBSCRIBE": {
        "destination is required": "1.0 1.1 1.2",
        "messages are henceforth delivered as MESSAGE": "1.0 1.1 1.2",
        "what cannot be created: ERROR, then close": "1.1 1.2",
        "selector may be supported": "1.0 1.1 1.2",
        "id is required": "1.1 1.2",
        "id is optional, and told in MESSAGE": "1.0",
        "different subscriptions have different ids": "1.2",
        "ack is auto by default": "1.0 1.1 1.2",
        "ack is one of auto and client": "1.0",
        "ack is one of auto, client and client-individual": "1.1 1.2",
        "auto: consumed once it is sent": "1.0 1.1 1.2",
        "client: not consumed before the ACK": "1.0 1.1 1.2",
        "client: ACK is cumulative within the subscription": "1.1 1.2",
        "client-individual: ACK and NACK are not cumulative": "1.1 1.2",
    },
    "UNSUBSCRIBE": {
        "no more messages come": "1.0 1.1 1.2",
        "id is required, and that of a subscription": "1.1 1.2",
        "id or destination is required": "1.0",
    },
    "ACK": {
        "message-id is required, and that of a MESSAGE": "1.0 1.1",
        "subscription is required": "1.1",
        "id is required, and the ack of a MESSAGE": "1.2",
        "transaction makes it part of the transaction": "1.0 1.1 1.2",
    },
    "NACK": {
        "the message was not consumed": "1.1 1.2",
        "it takes the headers of ACK": "1.1 1.2",
        "it is about one message, or about all before it": "1.1 1.2",
    },
    "BEGIN": {
        "transaction is required": "1.0 1.1 1.2",
        "sends and acknowledgements are one": "1.0 1.1 1.2",
        "different transactions have different identifiers": "1.2",
        "what is not committed is aborted at the end": "1.1 1.2",
    },
    "COMMIT": {
        "transaction is required, and one in progress": "1.0 1.1 1.2",
    },
    "ABORT": {
        "transaction is required, and one in progress": "1.0 1.1 1.2",
        "it rolls back": "1.0 1.1 1.2",
    },
    "DISCONNECT": {
        "its RECEIPT says that all frames before were received": "1.0 1.1 1.2",
        "no frame comes after it": "1.1 1.2",
    },
    "MESSAGE": {
        "destination is that of the SEND": "1.0 1.1 1.2",
        "message-id is unique": "1.0 1.1 1.2",
        "subscription is that of the SUBSCRIBE": "1.1 1.2",
        "ack is there where an ACK is wanted": "1.2",
        "the body is that of the SEND": "1.0 1.1 1.2",
    },
    "RECEIPT": {
        "receipt-id is the receipt, and there is no body": "1.0 1.1 1.2",
        "it comes once the frame was processed": "1.0 1.1 1.2",
        "all frames before it were received": "1.2",
    },
    "ERROR": {
        "the connection is closed behind it": "1.2",
        "message is short, the body says more": "1.0 1.1 1.2",
        "receipt-id names the frame it is about": "1.1 1.2",
    },
    "Augmented BNF": {
        "a header has a name and a colon": "1.0 1.1 1.2",
        "a header's value may be empty": "1.1 1.2",
        "a frame has to end before another begins": "1.0 1.1 1.2",
    },
}

#: Statement to the versions it holds for; a statement reads ``section: words``.
STATEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    f"{section}: {words}": tuple(versions.split())
    for section, statements in _STATEMENTS.items()
    for words, versions in statements.items()
}

#: Statement and version of every row; filled as the test modules are imported.
shown: Final[set[tuple[str, str]]] = set()


def show(statement: str, version: str) -> str:
    """Note that a row shows a statement for a version; return its name in the list of tests."""
    assert version in STATEMENTS[statement], f"nothing of the kind is said in {version}"
    shown.add((statement, version))
    return f"{version} {statement}"
