"""The page works in a real browser: whole, without errors, on a phone, on paper, light and dark."""

from __future__ import annotations

import base64

import pytest

from cceclust.report import write_report

PARTS = ("loss", "confidence", "map", "clusters", "classes", "confusion", "images", "origins")


@pytest.fixture(scope="module")
def page(browser, rich_clusters):
    """Return the browser with the report open."""
    target = rich_clusters.parent / "report.html"
    write_report(rich_clusters, target)
    browser.get(target.as_uri())
    return browser


def show(page, *, width=1400, scheme="light"):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    preference = {"name": "prefers-color-scheme", "value": scheme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})


def test_it_opens_without_a_console_message(page):
    page.refresh()
    assert page.get_log("browser") == []


def test_every_part_is_there_and_takes_up_room(page):
    show(page)
    for part in PARTS:
        height = page.execute_script("return document.getElementById(arguments[0]).offsetHeight", part)
        assert height > 50, part


def test_what_files_contain_is_text_not_markup(page):
    assert page.title.startswith("Clusters of features.h5")
    assert page.execute_script("return document.scripts.length") == 0
    assert "beware <script>" in page.execute_script("return document.querySelector('.warnings').innerText")


def test_nothing_is_loaded_from_elsewhere(page):
    addresses = page.execute_script("return [...document.querySelectorAll('[src], [href]')].map(e => e.src || e.href)")
    assert addresses
    assert all(address.startswith("data:") for address in addresses)


def test_every_image_decodes_and_has_an_alternative_text(page):
    images = page.execute_script(
        "return [...document.images].map(i => [i.complete && i.naturalWidth, i.alt.length, i.offsetWidth])"
    )
    assert len(images) > 2 + 5 * 2
    assert all(width > 0 and text > 5 and shown > 10 for width, text, shown in images)
    drawings = page.execute_script(
        "return [...document.querySelectorAll('svg')].map(s => s.getAttribute('aria-label'))"
    )
    assert drawings
    assert all(drawings)


@pytest.mark.parametrize("width", [360, 400, 800, 1400])
def test_it_needs_no_sideways_scrolling(page, width):
    show(page, width=width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_it_follows_the_readers_colour_scheme(page):
    grounds = []
    for scheme in ("light", "dark"):
        show(page, scheme=scheme)
        grounds.append(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(246, 246, 243)", "rgb(15, 18, 22)"]


def test_it_prints_on_a_few_pages(page):
    document = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    n_pages = base64.b64decode(document).count(b"/Type /Page\n") or base64.b64decode(document).count(b"/Type /Page ")
    assert 2 <= n_pages <= 8


def test_the_chosen_restart_is_drawn_on_top(page):
    classes = page.execute_script(
        "return [...document.querySelectorAll('#loss path')].map(p => p.getAttribute('class'))"
    )
    assert classes == ["curve", "curve", "curve", "chosen"]
