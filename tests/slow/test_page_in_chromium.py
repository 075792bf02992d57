"""The page works in a real browser: whole, without errors, on a phone, light and dark."""

from __future__ import annotations

import numpy as np
import pytest

from cceclust.io import Clusters, read_clusters, write_features
from cceclust.report import write_report


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
    # The script places names once the page has its new width.
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def test_every_part_takes_up_room_and_nothing_is_said_to_the_console(page):
    page.refresh()
    show(page)
    parts = page.execute_script(
        "return [...document.querySelectorAll('[id]:not(script)')].map(e => [e.id, e.offsetHeight])"
    )
    assert {"map", "images", "origins"} <= {name for name, _ in parts}
    assert min(height for _, height in parts) > 50
    assert page.get_log("browser") == []


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


def point_at(page, number, *, event="pointermove", frame=0):
    """Send an event to the place of a point on a map, and return the text of the tip and whether it is shown."""
    return page.execute_script(
        """
        const [number, event, which] = arguments;
        const data = JSON.parse(document.getElementById("map-data").textContent);
        const at = (t) => new Uint16Array(Uint8Array.from(atob(t), (c) => c.charCodeAt(0)).buffer)[number] / 65535;
        const frame = document.querySelectorAll(".map")[which], box = frame.getBoundingClientRect();
        const place = { clientX: box.left + at(data.x) * box.width, clientY: box.top + at(data.y) * box.height };
        frame.dispatchEvent(new PointerEvent(event, { ...place, bubbles: true }));
        const tip = document.querySelector(".tip"), edges = tip.getBoundingClientRect();
        return { text: tip.innerText, shown: getComputedStyle(tip).display !== "none", left: edges.left,
                 right: edges.right, picture: getComputedStyle(tip.querySelector("img")).display !== "none" };
        """,
        number,
        event,
        frame,
    )


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("frame", [0, 1])
def test_pointing_at_a_point_shows_its_row(page, width, frame, rich_clusters):
    show(page, width=width)
    clusters = read_clusters(rich_clusters)
    # Even rows have an image. A point nearby may be taken instead, so only some are the row itself.
    tips = [point_at(page, row, frame=frame) for row in range(0, 40, 2)]
    assert all(tip["shown"] and tip["left"] >= 0 and tip["right"] <= width and tip["picture"] for tip in tips)
    assert sum(tip["text"].startswith(f"{row} <script>") for row, tip in zip(range(0, 40, 2), tips, strict=True)) > 5
    own = next((row, tip) for row, tip in zip(range(0, 40, 2), tips, strict=True) if tip["text"].startswith(f"{row} "))
    assert f"confidence {clusters.probabilities[own[0]].max():.2f}" in own[1]["text"]
    assert f"true class {clusters.true_labels[own[0]]}" in own[1]["text"]
    assert page.title.startswith("Clusters of features.h5")


def test_a_click_keeps_the_row_and_shows_its_cluster_until_escape(page):
    show(page)
    first = point_at(page, 0, event="click")
    assert first["shown"]
    assert point_at(page, 100)["text"] == first["text"]
    assert page.execute_script("return document.querySelectorAll('.map.picked').length") == 2
    drawn = "return document.querySelector('canvas').getContext('2d').getImageData(0, 0, 1120, 840).data.some(v => v)"
    assert page.execute_script(drawn)
    page.execute_script("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    assert page.execute_script("return document.querySelectorAll('.map.picked, .tip.shown').length") == 0
    assert not page.execute_script(drawn)


@pytest.mark.parametrize("n_clusters", [10, 100])
def test_names_on_the_map_lie_inside_and_apart(browser, tmp_path, n_clusters):
    generator = np.random.default_rng(0)
    labels = np.arange(1000) % n_clusters
    features = 3 * generator.normal(size=(n_clusters, 16))[labels] + generator.normal(size=(1000, 16))
    write_features(tmp_path / "x.h5", features.astype(np.float32))
    write_report(Clusters(labels), tmp_path / "report.html", features=tmp_path / "x.h5")
    browser.get((tmp_path / "report.html").as_uri())
    for width, least in ((400, 0.4), (1400, 0.9)):
        show(browser, width=width)
        boxes = browser.execute_script(
            "const map = document.querySelector('.map').getBoundingClientRect();"
            "return [...document.querySelectorAll('.map span')].filter(s => s.style.visibility !== 'hidden')"
            ".map(s => s.getBoundingClientRect())"
            ".map(b => [b.left - map.left, b.top - map.top, b.right - map.left, b.bottom - map.top, map.width])"
        )
        assert len(boxes) >= least * n_clusters
        for place, (left, top, right, bottom, room) in enumerate(boxes):
            assert min(left, top, room - right, 0.75 * room - bottom) > -2
            # Rounding may let frames overlap by a pixel.
            for others in boxes[:place]:
                assert max(left - others[2], others[0] - right, top - others[3], others[1] - bottom) > -2
