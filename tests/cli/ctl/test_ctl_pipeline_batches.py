"""The verbs for batches of Spark's sink."""

import json

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

BATCH = {
    "name": "3b9f", "user": "spark", "producer": "nightly", "query": "job 1", "batch": 0, "state": "held",
    "reason": "no exchange 'orders' in vhost '/'", "rows": 900, "checked": 900, "published": 300, "dropped": 0,
    "refused": 0, "committed_at": 1_790_000_000_000,
}  # fmt: skip


def test_batches_are_listed_with_the_reason_that_holds_them(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET pipeline/%2F/batches", {"batches": [BATCH], "staged": {"attempts": 1, "bytes": 9, "limit": 99}})
    result = ctl("list_pipeline_batches", "-s")
    assert (result.code, result.out) == (0, "3b9f\tnightly\t0\theld\t300\t900\tno exchange 'orders' in vhost '/'\n")
    assert json.loads(ctl("list_pipeline_batches", "state,user", "--formatter=json").out) == [
        {"state": "held", "user": "spark"}
    ]


def test_a_batch_is_ended_by_its_name(ctl: Ctl, api: FakeApi) -> None:
    api.answer("DELETE pipeline/%2F/batches/3b9f", None)
    assert ctl("end_pipeline_batch", "3b9f").code == 0
    result = ctl("end_pipeline_batch", "none")
    assert result.code == 69
    assert "committed batch 'none' does not exist in vhost '/'" in result.err
