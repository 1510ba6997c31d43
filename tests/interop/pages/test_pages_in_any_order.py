"""README and the tutorials, as written, except for ports: on one broker in a random order, and in the reverse order.

So each page comes after each other one.
"""

import random
from pathlib import Path
from typing import Final

import pytest

from docs.tools.site.navigation import PARTS
from tests.interop.examples.test_examples import NAMES as EXAMPLES
from tests.interop.gateways import gateway_in
from tests.interop.pages.blocks import ROOT, blocks
from tests.interop.pages.reader import Reader

#: The pages whose blocks a reader pastes.
FOLLOWED: Final = (
    "README.md",
    "docs/tutorial.md",
    "docs/streams.md",
    "docs/exchanges.md",
    "docs/users.md",
    "docs/queues.md",
    "docs/queues-extras.md",
    "docs/selectors.md",
    "docs/protocols/mqtt.md",
    "docs/protocols/stomp.md",
    "docs/plugins/events.md",
    "docs/plugins/exchange-type.md",
    "docs/plugins/exchange-types.md",
    "docs/plugins/interceptor.md",
    "docs/plugins/metrics.md",
    "docs/plugins/operators.md",
    "docs/plugins/queue-feature.md",
)

#: Another order in each session.
ORDER: Final = tuple(random.SystemRandom().sample(FOLLOWED, len(FOLLOWED)))


@pytest.mark.timeout(400)  # of a busy machine: it takes ten seconds of processor time
@pytest.mark.parametrize("order", [ORDER, ORDER[::-1]], ids=["an order", "its reverse"])
def test_the_pages_can_be_followed_in_any_order_on_one_broker(tmp_path: Path, order: tuple[str, ...]) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir(mode=0o755)
    with gateway_in(tmp_path / "gateway", f'plugins_dir="{plugins}"') as gateway:
        reader = Reader(gateway, tmp_path / "reader", plugins)
        for number, page in enumerate(order):
            try:
                reader.follow(ROOT / page)
            except AssertionError as error:
                raise AssertionError(f"{error}\nafter {', '.join(order[:number]) or 'no other page'}") from error


#: Tutorials that other tests run, by the test; a script tries what installs.
RUN_ELSEWHERE: Final = {
    "docs/install.md": "etc/packaging/try-deb.sh",
    "docs/plugins/io.md": "tests/broker/testing/test_io_page.py",
    **{f"examples/{name}/README.md": "tests/interop/examples/test_examples.py" for name in EXAMPLES},
}


def test_all_tutorials_with_something_to_paste_are_followed() -> None:
    tutorials = PARTS["Tutorials"].pages
    pasted = {page for page in tutorials if any(block.language in ("python", "sh") for block in blocks(ROOT / page))}
    assert pasted - set(FOLLOWED) == set(RUN_ELSEWHERE)
    assert all((ROOT / test).is_file() for test in RUN_ELSEWHERE.values())


def test_each_receiver_has_an_output_and_each_output_a_block_before_it() -> None:
    for page in FOLLOWED:
        before = ""
        for block in blocks(ROOT / page):
            if block.language == "output" and not block.about:
                assert before in ("python", "sh"), f"{block.place} is the output of nothing"
            before = block.language
