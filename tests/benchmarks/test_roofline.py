"""The roofline: parts are timed while they run, and left as they were."""

from __future__ import annotations

import pytest
import roofline
from speed import make_blobs

from cceclust import CCEClusterer
from cceclust.training import fit


@pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")
def test_every_part_of_a_default_fit_is_timed() -> None:
    features = make_blobs(600, 1100, 3)
    before = fit.predict_rows
    seconds, total = roofline.seconds_of_parts(lambda: CCEClusterer(3, random_state=0, n_jobs=1).fit(features))
    assert all(part > 0 for part in seconds.values())
    assert sum(seconds.values()) < total
    assert fit.predict_rows is before


def test_work_grows_with_the_rows() -> None:
    few, many = (roofline.least_work(n_rows, 2048, 10) for n_rows in (50_000, 100_000))
    assert set(few) <= set(roofline.PARTS)
    assert many["project"] == (2 * few["project"][0], 2 * few["project"][1])
