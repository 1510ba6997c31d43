"""The requirements of STOMP 1.0, 1.1 and 1.2 for a server, and the rows that test them.

The specifications do not number their sentences, so a statement is identified by its section (of 1.2, where there is
one) and a short summary. A test names the statements it covers with ``states`` or ``rows`` of ``tables.py``; those are
collected in ``shown``.
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
        "encoding is the reverse": "1.1 1.2",
        "CONNECT and CONNECTED escape nothing": "1.1 1.2",
        "headers are neither trimmed nor padded": "1.1 1.2",
        "headers may be padded": "1.0",
    },
    "Body": {
        "only SEND, MESSAGE and ERROR have one": "1.1 1.2",
        "the body of SUBSCRIBE is ignored": "1.0",
    },
    "Header content-length": {
        "that many octets are read, of any value": "1.0 1.1 1.2",
        "a NULL octet still follows": "1.0 1.1 1.2",
        "without content-length the first NULL octet ends the frame": "1.0 1.1 1.2",
        "MESSAGE and ERROR with a body have the header": "1.0 1.1 1.2",
    },
    "Header content-type": {
        "MESSAGE and ERROR with a body should have the header": "1.1 1.2",
    },
    "Header receipt": {
        "any frame but CONNECT may have the header, and RECEIPT answers": "1.0 1.1 1.2",
    },
    "Repeated Header Entries": {
        "only the first entry counts": "1.1 1.2",
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
        "an unknown virtual host may be rejected": "1.1 1.2",
        "login and passcode authenticate": "1.0 1.1 1.2",
    },
    "CONNECTED Frame": {
        "version is set": "1.1 1.2",
        "session is unique": "1.0 1.1 1.2",
        "server is a name and may have a version": "1.1 1.2",
    },
    "Protocol Negotiation": {
        "the highest common version is used": "1.1 1.2",
        "without accept-version it is 1.0": "1.0",
        "no common version: ERROR with versions, then close": "1.1 1.2",
    },
    "Heart-beating": {
        "CONNECTED has the server's intervals": "1.1 1.2",
        "none in CONNECT is 0,0": "1.1 1.2",
        "it is two numbers": "1.1 1.2",
        "the server sends data in time": "1.1 1.2",
        "a silent client may be considered dead": "1.1 1.2",
        "any data shows that a client is alive": "1.1 1.2",
    },
    "Client Frames": {
        "an unknown frame may be answered by ERROR, then close": "1.1 1.2",
    },
    "SEND": {
        "destination is required": "1.0 1.1 1.2",
        "transaction makes it transactional": "1.0 1.1 1.2",
        "the user's headers are passed through in MESSAGE": "1.0 1.1 1.2",
        "a SEND that cannot be processed: ERROR, then close": "1.1 1.2",
    },
    "SUBSCRIBE": {
        "destination is required": "1.0 1.1 1.2",
        "messages are delivered as MESSAGE from then on": "1.0 1.1 1.2",
        "a subscription that cannot be created: ERROR, then close": "1.1 1.2",
        "selector may be supported": "1.0 1.1 1.2",
        "id is required": "1.1 1.2",
        "id is optional, and contained in MESSAGE": "1.0",
        "different subscriptions have different ids": "1.2",
        "ack is auto by default": "1.0 1.1 1.2",
        "ack is one of auto and client": "1.0",
        "ack is one of auto, client and client-individual": "1.1 1.2",
        "auto: consumed when it is sent": "1.0 1.1 1.2",
        "client: not consumed before the ACK": "1.0 1.1 1.2",
        "client: ACK is cumulative within the subscription": "1.1 1.2",
        "client-individual: ACK and NACK are not cumulative": "1.1 1.2",
    },
    "UNSUBSCRIBE": {
        "no more messages are delivered": "1.0 1.1 1.2",
        "id is required, and belongs to a subscription": "1.1 1.2",
        "id or destination is required": "1.0",
    },
    "ACK": {
        "message-id is required, and belongs to a MESSAGE": "1.0 1.1",
        "subscription is required": "1.1",
        "id is required, and is the ack of a MESSAGE": "1.2",
        "transaction makes it part of the transaction": "1.0 1.1 1.2",
    },
    "NACK": {
        "the message was not consumed": "1.1 1.2",
        "it takes the headers of ACK": "1.1 1.2",
        "it applies to one message, or to all before it": "1.1 1.2",
    },
    "BEGIN": {
        "transaction is required": "1.0 1.1 1.2",
        "sends and acknowledgements are atomic": "1.0 1.1 1.2",
        "different transactions have different identifiers": "1.2",
        "an uncommitted transaction is aborted at the end": "1.1 1.2",
    },
    "COMMIT": {
        "transaction is required, and one in progress": "1.0 1.1 1.2",
    },
    "ABORT": {
        "transaction is required, and one in progress": "1.0 1.1 1.2",
        "it rolls back": "1.0 1.1 1.2",
    },
    "DISCONNECT": {
        "its RECEIPT confirms all earlier frames": "1.0 1.1 1.2",
        "no frame follows it": "1.1 1.2",
    },
    "MESSAGE": {
        "destination is equal to that of the SEND": "1.0 1.1 1.2",
        "message-id is unique": "1.0 1.1 1.2",
        "subscription is the id of the SUBSCRIBE": "1.1 1.2",
        "ack is present when an ACK is required": "1.2",
        "the body is equal to that of the SEND": "1.0 1.1 1.2",
    },
    "RECEIPT": {
        "receipt-id is the receipt, and there is no body": "1.0 1.1 1.2",
        "it is sent when the frame was processed": "1.0 1.1 1.2",
        "all frames before it were received": "1.2",
    },
    "ERROR": {
        "the connection is closed after it": "1.2",
        "message is short, the body has the details": "1.0 1.1 1.2",
        "receipt-id identifies the frame at fault": "1.1 1.2",
    },
    "Augmented BNF": {
        "a header has a name and a colon": "1.0 1.1 1.2",
        "a header's value may be empty": "1.1 1.2",
        "a frame has to end before another begins": "1.0 1.1 1.2",
    },
}

#: Statement to the versions it applies to; a statement is written ``section: summary``.
STATEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    f"{section}: {words}": tuple(versions.split())
    for section, statements in _STATEMENTS.items()
    for words, versions in statements.items()
}

#: Statement and version of every row; filled when the test modules are imported.
shown: Final[set[tuple[str, str]]] = set()


def show(statement: str, version: str) -> str:
    """Record that a row covers a statement for a version; return its name for test ids."""
    assert version in STATEMENTS[statement], f"{version} has no such statement"
    shown.add((statement, version))
    return f"{version} {statement}"
