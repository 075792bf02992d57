"""Everything that is not markup is escaped."""

from __future__ import annotations

from cceclust.report.drawing import element


def test_text_is_escaped_and_markup_is_kept():
    inner = element("b", "<i>")
    assert element("p", "1 < 2 ", inner, class_='a " b', id=None) == (
        '<p class="a &quot; b">1 &lt; 2 <b>&lt;i&gt;</b></p>'
    )
