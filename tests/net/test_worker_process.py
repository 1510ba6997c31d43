"""The worker process: started on demand, restarted when it dies; a broker's reactor drives it."""

import subprocess
import sys
from textwrap import dedent

PRELUDE = """
    import os, signal, sys
    from gateway.net.reactor import install
    reactor = install()
    from gateway.worker_process import process as child
    from gateway.worker_process.process import WorkerProcess
    def say(*words): print(*words, flush=True)
    reactor.callLater(30, reactor.crash)
    child._RESTART_S = 0.01
    CHUNKS = b""
    def arrow(to=0, partition=0):
        return {"do": "arrow", "vhost": "/", "queue": "q", "partition": partition, "from": 0, "to": to}
    worker = WorkerProcess(reactor, "gateway.columnar.encoding.worker")
    def end(): worker.stop(); reactor.stop()
"""


def run(script: str) -> list[str]:
    """Return the lines that the script printed."""
    program = dedent(PRELUDE) + dedent(script) + "\nreactor.run(installSignalHandlers=False)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split("\n")[:-1]


def test_requests_are_answered_in_order_and_the_process_starts_with_the_first() -> None:
    assert run("""
        say(worker.process_id)
        def answered(number, answer):
            say(number, answer.error, answer.payload[:4] == b"\\xff" * 4)
            if number == 3: end()
        for number in range(4):
            worker.ask(arrow(), b"", lambda answer, number=number: answered(number, answer))
        say(worker.requests)
    """) == ["None", "4", "0 None True", "1 None True", "2 None True", "3 None True"]


def test_an_urgent_request_goes_before_those_that_wait() -> None:
    assert run("""
        def answered(name):
            say(name)
            if name == "c": end()
        for name in "abc":
            worker.ask(arrow(), b"", lambda answer, name=name: answered(name))
        worker.ask(arrow(), b"", lambda answer: answered("urgent"), is_urgent=True)
    """) == ["a", "b", "urgent", "c"]


def test_a_failed_request_is_answered_with_its_error_and_the_next_one_is_served() -> None:
    [failed, fine] = run("""
        worker.ask({"do": "segment", "vhost": "/", "queue": "q", "partition": 0, "path": "/nowhere"}, b"",
                   lambda answer: say(answer.error))
        worker.ask(arrow(), b"", lambda answer: (say(answer.error), end()))
    """)
    assert failed.startswith("FileNotFoundError")
    assert fine == "None"


def test_a_killed_process_is_replaced_and_its_requests_are_repeated() -> None:
    assert run("""
        def first(answer):
            pid = worker.process_id
            os.kill(pid, signal.SIGSTOP)
            for name in "ab":
                worker.ask(arrow(), b"", lambda answer, name=name: again(pid, name, answer))
            os.kill(pid, signal.SIGKILL)
        def again(pid, name, answer):
            say(name, answer.error, worker.process_id != pid)
            if name == "b": end()
        worker.ask(arrow(), b"", first)
    """) == ["a None True", "b None True"]


def test_a_request_that_kills_its_process_twice_fails_and_the_others_are_served() -> None:
    assert run("""
        def killing():
            if worker.process_id: os.kill(worker.process_id, signal.SIGKILL)
        real = WorkerProcess._start
        def start(self):
            real(self)
            if len(deaths) < 2:
                deaths.append(1)
                killing()
        deaths = []
        WorkerProcess._start = start
        worker.ask(arrow(), b"", lambda answer: say(answer.error))
        worker.ask(arrow(), b"", lambda answer: (say(answer.error), end()))
    """) == ["the worker process died twice while it processed this request", "None"]


def test_large_payloads_are_exchanged_while_the_reactor_keeps_running() -> None:
    [size, ticks] = run("""
        from gateway.kernel.messages.chunks import encode_chunk
        from gateway.kernel.messages.contents import ContentWriter
        from gateway.kernel.messages.message import Message, Properties
        from gateway.kernel.messages.native_header import native_header
        content = ContentWriter().encode(Message("", "q", native_header(Properties()), os.urandom(1 << 20)))
        chunks = b"".join(encode_chunk(at, [(1, b"", content)]) for at in range(20))
        ticks = []
        def tick():
            ticks.append(1)
            reactor.callLater(0.005, tick)
        tick()
        worker.ask(arrow(to=20), chunks, lambda answer: (say(len(answer.payload)), say(len(ticks)), end()))
    """)
    assert int(size) > 20 << 20
    assert int(ticks) > 5


def test_a_process_ends_after_the_idle_timeout_and_on_stop() -> None:
    assert run("""
        child._IDLE_S = 0.05
        def gone(pid):
            try: os.kill(pid, 0)
            except ProcessLookupError: return True
            return False
        def first(answer):
            pid = worker.process_id
            reactor.callLater(0.3, lambda: (say(gone(pid), worker.process_id), worker.ask(arrow(), b"", second)))
        def second(answer):
            pid = worker.process_id
            worker.ask(arrow(), b"", lambda answer: say("never"))
            end()
            say(gone(pid))
        worker.ask(arrow(), b"", first)
    """) == ["True None", "True"]
