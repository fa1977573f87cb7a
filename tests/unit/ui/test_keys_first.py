"""A paint waits for the key before it, and not for ever."""

from __future__ import annotations

from edgerag.ui.tui.keys_first import KeysFirst


def test_after_a_key_there_is_a_wait_that_ends_by_itself() -> None:
    now = [100.0]
    keys = KeysFirst(clock=lambda: now[0])
    assert keys.wait_s() == 0.0
    keys.touch()
    first = keys.wait_s()
    assert 0.0 < first < 0.05, "no eye sees it"
    now[0] += first / 2
    assert 0.0 < keys.wait_s() < first
    now[0] += first
    assert keys.wait_s() == 0.0
