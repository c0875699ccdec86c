from __future__ import annotations

import pytest

from agentnb.samples.tools.research import archive, questions


def test_each_topic_is_a_question():
    assert questions(["tides", "sky"])["items"] == ["What is known about tides?", "What is known about sky?"]


def test_the_archive_is_closed():
    with pytest.raises(ConnectionError, match="closed"):
        archive("tides")
