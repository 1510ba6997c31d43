"""The reactor that ends turns, in a separate process, because a process has one reactor and the tests use another."""

import subprocess
import sys
from textwrap import dedent

import pytest

PRELUDE = """
    import sys
    from gateway.net.reactor import install
    reactor = install()
    from twisted.internet.protocol import Factory, Protocol
    from twisted.internet.endpoints import TCP4ServerEndpoint, TCP4ClientEndpoint, connectProtocol
    def say(text): print(text, flush=True)
    from gateway.net.turn import Turn, TurnParticipant
    from gateway.testing import MemoryBroker
    journal = MemoryBroker().kernel.journal
    class Ending(TurnParticipant):
        def __init__(self, call): self.call = call
        def flush(self): self.call()
        def fail(self): raise
    def at_end_of_turn(call): Turn(journal, reactor.loop).schedule_flush(Ending(call))
    reactor.callLater(20, reactor.crash)
"""


def run(script: str) -> list[str]:
    """Return the lines that the script printed."""
    program = dedent(PRELUDE) + dedent(script) + "\nreactor.run()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split("\n")[:-1]


def test_a_turn_ends_after_the_delayed_calls_of_its_round() -> None:
    assert run("""
        def first():
            say("first")
            at_end_of_turn(lambda: say("end"))
        reactor.callLater(0, first)
        reactor.callLater(0, lambda: say("second"))
        reactor.callLater(0.05, reactor.stop)
    """) == ["first", "second", "end"]


def test_a_turn_touched_at_its_end_is_followed_by_another_one_without_delay() -> None:
    assert run("""
        import time
        def start():
            begun = time.monotonic()
            def third():
                say("prompt" if time.monotonic() - begun < 10 else "late")
                reactor.stop()
            at_end_of_turn(lambda: (say("one"), at_end_of_turn(third)))
        reactor.callLater(0, start)
    """) == ["one", "prompt"]


def test_a_turn_ends_after_all_events_of_a_poll() -> None:
    assert run("""
        class Serving(Protocol):
            def dataReceived(self, data):
                say("data")
                at_end_of_turn(lambda: (say("end"), self.transport.write(b"answer")))
        class Asking(Protocol):
            def connectionMade(self): self.transport.write(b"question")
            def dataReceived(self, data):
                say(data.decode())
                reactor.stop()
        def listening(port):
            number = port.getHost().port
            connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", number), Asking())
        serving = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(Factory.forProtocol(Serving))
        serving.addCallback(listening)
    """) == ["data", "end", "answer"]


def test_an_error_of_one_descriptor_stops_neither_the_loop_nor_the_turn() -> None:
    assert run("""
        from twisted.internet.abstract import FileDescriptor
        import os
        read, write = os.pipe()
        class Broken(FileDescriptor):
            def fileno(self): return read
            def doRead(self):
                os.read(read, 1)
                say("read")
                at_end_of_turn(lambda: 1 / 0)
                at_end_of_turn(lambda: say("end"))
                reactor.callLater(0.05, reactor.stop)
                raise RuntimeError("a fault")
            def connectionLost(self, reason): pass
        reactor.addReader(Broken(reactor))
        reactor.callLater(0, os.write, write, b"x")
    """) == ["read", "end"]


READY = """
    import socket
    from gateway.net.loop import MOST_EVENTS
    COUNT = 3 * MOST_EVENTS
    turns, served = [0], []
    class Ready:
        def __init__(self, number):
            self.number = number
            self.near, self.far = socket.socketpair()
            self.far.send(b"x")
        def fileno(self): return self.near.fileno()
        def logPrefix(self): return "ready"
        def doRead(self):
            if is_reading: self.near.recv(1)
            served.append(self.number)
            if not turns[-1]: at_end_of_turn(lambda: turns.append(0))
            turns[-1] += 1
            if len(served) >= COUNT: reactor.stop()
        def connectionLost(self, reason): pass
    reactor.seconds = clock
    for number in range(COUNT):
        reactor.addReader(Ready(number))
    reactor.addSystemEventTrigger("after", "shutdown", lambda: (say(max(turns) // MOST_EVENTS),
        say(sorted(served[:COUNT]) == list(range(COUNT)))))
"""


def test_a_long_turn_serves_a_limited_number_and_all_descriptors_before_any_is_served_again() -> None:
    assert run("from itertools import count\nclock, is_reading = count().__next__, False\n" + dedent(READY)) == [
        "1",
        "True",
    ]


def test_a_short_turn_continues_with_the_descriptors_that_wait() -> None:
    assert run("clock, is_reading = lambda: 0.0, True\n" + dedent(READY)) == ["3", "True"]


GUESTS = """
    import socket
    COUNT = 200
    class Serving(Protocol):
        def connectionMade(self): guests.append(self)
        def dataReceived(self, data): received.append(data)
        def connectionLost(self, reason): lost.append(self)
    guests, received, lost, clients = [], [], [], []
    def end():
        then()
        if reactor.running: at_end_of_turn(end)
    port = reactor.listenTCP(0, Factory.forProtocol(Serving), 512, "127.0.0.1")
    clients = [socket.create_connection(("127.0.0.1", port.getHost().port)) for _ in range(COUNT)]
    at_end_of_turn(end)
"""


def test_a_promoted_connection_is_served_before_many_that_have_not_logged_in() -> None:
    assert run(
        GUESTS
        + """
    from gateway.net.loop import MOST_NEWCOMERS
    def then():
        if len(guests) == COUNT:
            guests.append(None)
            guests[-2].transport.promote()
            for client in clients[:-1]: client.send(b"login")
            clients[-1].send(b"ping")
        if b"ping" in received:
            say(len(received) <= MOST_NEWCOMERS + 1)
            received.clear()
            reactor.stop()
    """
    ) == ["True"]


def test_closed_connections_are_notified_a_few_in_each_turn_and_all_in_the_end() -> None:
    assert run(
        GUESTS
        + """
    from gateway.net.loop import MOST_LEAVING
    counts = []
    def then():
        if len(guests) < COUNT: return
        for guest in guests: guest.transport.promote()
        for client in clients: client.close()
        clients.clear()
        counts.append(len(lost))
        if counts.count(COUNT) == 1 and counts[-1] == COUNT:
            say(max(after - before for before, after in zip(counts, counts[1:])) <= MOST_LEAVING)
            say(len({id(guest) for guest in lost}))
            reactor.stop()
    """
    ) == ["True", "200"]


def test_a_stop_notifies_all_closed_connections() -> None:
    assert run(
        GUESTS
        + """
    reactor.addSystemEventTrigger("after", "shutdown", lambda: say(len(lost)))
    def then():
        if len(guests) < COUNT: return
        for client in clients: client.close()
        if lost: reactor.stop()
    """
    ) == ["200"]


def test_a_listener_accepts_a_few_connections_in_each_turn() -> None:
    turns = run("""
        import socket
        from gateway.net.loop import MOST_ACCEPTED
        newcomers, turns = [], []
        class Serving(Protocol):
            def connectionMade(self):
                if not newcomers:
                    at_end_of_turn(end)
                newcomers.append(self)
        def end():
            turns.append(len(newcomers))
            newcomers.clear()
            if sum(turns) == len(clients):
                say(MOST_ACCEPTED)
                for turn in turns:
                    say(turn)
                reactor.stop()
        port = reactor.listenTCP(0, Factory.forProtocol(Serving), 512, "127.0.0.1")
        clients = [socket.create_connection(("127.0.0.1", port.getHost().port)) for _ in range(300)]
    """)
    most, *newcomers = map(int, turns)
    assert sum(newcomers) == 300
    assert max(newcomers) <= most


def test_a_connection_whose_end_is_noticed_twice_is_notified_once() -> None:
    """The peer closes its side, and the connection is aborted before that is reported."""
    assert run("""
        from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
        from twisted.logger import globalLogPublisher
        globalLogPublisher.addObserver(lambda event: say("failure") if event.get("log_failure") else None)
        class Serving(Protocol):
            def dataReceived(self, data):
                reactor.selectable_ended(self.transport, CONNECTION_LOST, False)
                reactor.selectable_ended(self.transport, CONNECTION_DONE, True)
            def connectionLost(self, reason):
                say("lost")
                reactor.callLater(0.2, reactor.stop)
        class Asking(Protocol):
            def connectionMade(self): self.transport.write(b"question")
        def listening(port):
            connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port.getHost().port), Asking())
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        endpoint.listen(Factory.forProtocol(Serving)).addCallback(listening)
    """) == ["lost"]


SERVED = """
    class Client(Protocol):
        def __init__(self): self.received = 0
        def connectionMade(self): self.transport.write(b"hello")
        def dataReceived(self, data): self.received += len(data)
        def connectionLost(self, reason):
            say(f"client got {self.received}: {reason.value.__class__.__name__}")
    def connect(port, client): connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port.getHost().port), client)
    def serve(protocol, client):
        serving = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(Factory.forProtocol(protocol))
        serving.addCallback(connect, client)
        return serving
"""


def test_a_server_that_closes_its_output_sends_what_waits_and_still_reads() -> None:
    for size in (0, 7, 20_000_000):
        assert run(
            dedent(SERVED)
            + dedent(f"""
            class Serving(Protocol):
                def dataReceived(self, data):
                    self.transport.write(bytes({size}))
                    self.transport.loseWriteConnection()
                    self.transport.loseWriteConnection()
                def connectionLost(self, reason):
                    say(f"server: {{reason.value.__class__.__name__}}")
                    reactor.callLater(0, reactor.stop)
            serve(Serving, Client())
        """)
        ) == [f"client got {size}: ConnectionDone", "server: ConnectionDone"]


@pytest.mark.source
def test_after_an_error_of_an_accept_later_connections_are_served() -> None:
    assert (
        run(
            dedent(SERVED)
            + dedent("""
        from gateway.net import reactor as module
        errors = [ConnectionAbortedError(103, "the client has gone")]
        def failing(listener):
            if errors:
                raise errors.pop()
            return accept(listener)
        accept, module.accept = module.accept, failing
        class Serving(Protocol):
            def dataReceived(self, data):
                say(f"{data.decode()} from {self.transport.getPeer().host} at {self.transport.getHost().host}")
                reactor.stop()
        listening = reactor.listenTCP(0, Factory.forProtocol(Serving), interface="127.0.0.1")
        connect(listening, Client())
    """)
        )[0]
        == "hello from 127.0.0.1 at 127.0.0.1"
    )


@pytest.mark.parametrize("error", ["RuntimeError", "OSError", "MemoryError"])
@pytest.mark.parametrize("place", ["buildProtocol", "connectionMade"])
def test_an_error_of_one_connection_closes_that_one_and_not_the_port(place: str, error: str) -> None:
    script = """
        class Serving(Protocol):
            def connectionMade(self): broken("connectionMade")
            def dataReceived(self, data):
                say(f"{data.decode()}, the port is open: {listening.connected}")
                reactor.stop()
        class Breaking(Factory):
            protocol = Serving
            def buildProtocol(self, address):
                broken("buildProtocol")
                return super().buildProtocol(address)
        errors = [PLACE]
        def broken(place):
            if place in errors:
                errors.remove(place)
                raise ERROR("broken")
        class Refused(Client):
            def connectionLost(self, reason):
                say("refused")
                connect(listening, Client())
        listening = reactor.listenTCP(0, Breaking(), interface="127.0.0.1")
        connect(listening, Refused())
    """
    said = run(dedent(SERVED) + dedent(script).replace("PLACE", repr(place)).replace("ERROR", error))
    assert "refused" in said
    assert "hello, the port is open: True" in said


def test_a_connection_without_a_protocol_is_closed() -> None:
    assert run(
        dedent(SERVED)
        + dedent("""
        class Refusing(Factory):
            def buildProtocol(self, address): return None
        class Refused(Client):
            def connectionLost(self, reason):
                say("refused")
                reactor.stop()
        connect(reactor.listenTCP(0, Refusing(), interface="127.0.0.1"), Refused())
    """)
    ) == ["refused"]


def test_results_of_threads_do_not_set_the_timer_of_the_next_delayed_call_anew() -> None:
    assert run("""
        import threading, time
        ends = set()
        class Recording:
            def __init__(self, waiter): self.wait, self.wait_for_turn_of = waiter.wait, waiter.wait_for_turn
            def wait_for_turn(self, until_s, *arguments):
                if until_s: ends.add(until_s)
                return self.wait_for_turn_of(until_s, *arguments)
        reactor.login_poller.waiter = Recording(reactor.login_poller.waiter)
        def work():
            for _ in range(5):
                time.sleep(0.01)
                reactor.callFromThread(lambda: None)
            reactor.callFromThread(reactor.stop)
        reactor.callLater(0, threading.Thread(target=work).start)
        reactor.addSystemEventTrigger("after", "shutdown", lambda: say(len(ends)))
    """) == ["1"]
