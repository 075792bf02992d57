"""Everything that is not markup is escaped, and axes have round numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cceclust.report.drawing import element, meter, round_numbers, table


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


def test_a_table_takes_texts_and_cells():
    html = table(["a", "b", "c"], [["1", "<2>", element("td", "3", class_="hit")]], caption="numbers")
    assert '<th scope="row">1</th><td>&lt;2&gt;</td><td class="hit">3</td>' in html


def test_a_bar_is_never_longer_than_its_track():
    assert "width:100.0%" in meter(1.7)
    assert "width:0.0%" in meter(-0.2)
