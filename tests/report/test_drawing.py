"""Everything that is not markup is escaped, and axes have round numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cceclust.report.drawing import element, round_numbers


@given(st.floats(1e-3, 1e6))
def test_axes_have_few_numbers_from_0_to_the_highest(highest):
    numbers = round_numbers(highest)
    assert 3 <= len(numbers) <= 7
    assert numbers[0] == 0
    assert numbers == sorted(numbers)
    assert numbers[-1] <= highest * (1 + 1e-6)


def test_text_is_escaped_and_markup_is_kept():
    inner = element("b", "<i>")
    assert element("p", "1 < 2 ", inner, class_='a " b', id=None) == (
        '<p class="a &quot; b">1 &lt; 2 <b>&lt;i&gt;</b></p>'
    )
