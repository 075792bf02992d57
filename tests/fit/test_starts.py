"""K-means as a start: the same bits whatever number of threads OpenMP would use."""

import os
import subprocess
import sys

import numpy as np

from cceclust.fit.starts import centroid_head, lloyd

SCRIPT = """
import hashlib
import numpy as np
from cceclust.fit.starts import lloyd
points = np.random.default_rng(0).normal(size=(3000, 20)).astype(np.float32)
print(hashlib.sha256(lloyd(points, np.ones(3000, np.float32), 10, 0, 2)[1].tobytes()).hexdigest())
"""


def test_the_number_of_openmp_threads_changes_no_bit() -> None:
    one, two, five = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "OMP_NUM_THREADS": str(count)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for count in (1, 2, 5)
    )
    assert one == two == five


def test_the_head_of_k_means_has_its_clusters() -> None:
    points = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    labels, centres, inertia = lloyd(points, np.ones(300, np.float32), 4, 0, 3)
    coef, intercept = centroid_head(centres, inertia)
    np.testing.assert_array_equal((points @ coef.T + intercept).argmax(axis=1), labels)
    np.testing.assert_allclose(((points - centres[labels]) ** 2).sum(axis=1).mean(), inertia, rtol=1e-5)
