"""Every decoder has a target, and every target calls the decoders that it names."""

import sys
from types import CodeType, FrameType

import pytest

from tests.fuzz.decoders.catalogue import TARGETS
from tests.fuzz.decoders.corpus import inputs_of
from tests.fuzz.decoders.exemptions import NO_DECODERS, NO_DECODERS_IN
from tests.fuzz.decoders.inventory import code_of, decoders, modules_with_parsers
from tests.fuzz.decoders.session import INSTRUMENTED
from tests.fuzz.decoders.target import Target

COVERED = {decoder for target in TARGETS.values() for decoder in target.covers}


def test_each_decoder_has_a_target() -> None:
    missing = decoders() - COVERED - NO_DECODERS.keys()
    assert not missing, f"add targets in tests/fuzz/decoders/targets, or reasons in exemptions.py: {sorted(missing)}"


def test_the_code_of_each_decoder_guides_the_fuzzer() -> None:
    packages = {decoder.partition(":")[0].partition(".")[0] for decoder in COVERED}
    assert not packages - set(INSTRUMENTED)


def test_each_module_that_calls_a_parser_has_a_target() -> None:
    missing = modules_with_parsers() - {decoder.partition(":")[0] for decoder in COVERED} - NO_DECODERS_IN.keys()
    assert not missing, f"add targets in tests/fuzz/decoders/targets, or reasons in exemptions.py: {sorted(missing)}"


def test_exemptions_are_of_functions_that_the_rule_finds() -> None:
    assert not NO_DECODERS.keys() - decoders()
    assert not NO_DECODERS.keys() & COVERED
    assert not NO_DECODERS_IN.keys() - modules_with_parsers()


def test_the_rule_finds_decoders_of_each_part() -> None:
    found = decoders()
    assert {"gateway_amqp.tables:decode_table", "gateway_stomp.decoder:FrameDecoder.feed"} <= found
    assert {"gateway.config.kinds:parse_size", "gateway_lmdb.records:decode_enqueued"} <= found
    assert "gateway.worker_process.framing" in modules_with_parsers()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_target_calls_the_decoders_that_it_covers(target: Target) -> None:
    """Otherwise the list would promise more than is fuzzed."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for data in inputs_of(target):
            target.run(data)
    finally:
        sys.setprofile(before)
    not_called = [decoder for decoder in target.covers if code_of(decoder) not in called]
    assert not not_called
