"""Frames between the broker and its worker, for any split of the bytes."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.worker_process.framing import Frame, FrameReader, encode_frame

HEADS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)
FRAMES = st.lists(st.builds(Frame, HEADS, st.binary(max_size=50)), max_size=5)


@given(frames=FRAMES, cuts=st.lists(st.integers(0, 500), max_size=10))
def test_frames_are_the_same_for_any_split_of_the_bytes(frames: list[Frame], cuts: list[int]) -> None:
    data = b"".join(encode_frame(*frame) for frame in frames)
    ends = sorted({*(min(cut, len(data)) for cut in cuts), len(data)})
    reader, found, begin = FrameReader(), [], 0
    for end in ends:
        found += reader.feed(data[begin:end])
        begin = end
    assert found == frames
