from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cceclust.cli.main import run
from cceclust.io import open_features, read_clusters, read_model, write_features

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")


def fit(features: Path, *options: Any, k: int = 3) -> int:
    return run(["fit", str(features), "-k", str(k), *map(str, options)])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestOutput:
    def test_clusters_and_model_are_written_beside_the_features(
        self, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(small_features) == 0
        assert names(small_features.parent) == ["small.clusters.h5", "small.h5", "small.model.safetensors"]
        assert read_clusters(small_features.with_suffix(".clusters.h5")).labels.shape == (120,)
        assert read_model(small_features.with_suffix(".model.safetensors")).coef.shape == (3, 6)
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("name", ["out.h5", "out.clusters.h5", "out.csv", "out.npy"])
    def test_results_have_the_name_of_the_clusters_that_are_asked_for(
        self, name: str, small_features: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "results").mkdir()
        assert fit(small_features, "--out", tmp_path / "results" / name, "--report") == 0
        assert names(tmp_path / "results") == sorted([name, "out.model.safetensors", "out.report.html"])
        assert names(tmp_path) == ["results", "small.h5"]

    def test_the_summary_says_what_a_person_wants_to_know(
        self, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fit(small_features)
        out = capsys.readouterr().out
        assert "120 rows in 3 clusters" in out
        assert len(re.findall(r"^ +[012] +█+ +40", out, re.MULTILINE)) == 3
        said = r"^Quality +modularity 0\.667, the best of \d+ clusterings; mean confidence (0\.9\d|1\.00)$"
        assert re.search(said, out, re.MULTILINE)
        assert not re.search(r"[ \n]\n", out)
        assert re.search(r"^Labels +ACC 1.000  NMI 1.000  ARI 1.000", out, re.MULTILINE)
        assert re.search(r"^Wrote .*small.clusters.h5, .*small.model.safetensors$", out, re.MULTILINE)
        assert re.search(r"^Next +cceclust report .*small.clusters.h5$", out, re.MULTILINE)

    def test_the_summary_has_at_most_eight_lines_beside_the_bars(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        labels = np.repeat([0, 1, 2], 60)
        rows = (np.random.default_rng(0).normal(size=(180, 4)) + 9 * np.eye(3, 4)[labels]) * [1, 1, 1, 1000]
        write_features(tmp_path / "x.h5", rows, labels=labels)
        assert run(["fit", str(tmp_path / "x.h5"), "--max-rows", "170"]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if line.strip() and "█" not in line]
        assert len(lines) <= 8
        assert "Data     columns were standardised; --scale overall turns it off; learned from 170 rows" in lines

    def test_notes_on_the_reading_are_printed(
        self, small_features: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def open_with_note(*arguments: Any, **options: Any) -> Any:
            features = open_features(*arguments, **options)
            features.notes = ["customer_id is used as the row id"]
            return features

        monkeypatch.setattr("cceclust.clustering.open_features", open_with_note)
        assert fit(small_features) == 0
        assert "customer_id is used as the row id" in capsys.readouterr().out

    def test_json_has_all_figures(self, small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(small_features, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        clusters = read_clusters(small_features.with_suffix(".clusters.h5"))
        assert (facts["n_samples"], facts["n_clusters"]) == (120, 3)
        assert facts["sizes"] == np.bincount(clusters.labels).tolist()
        assert facts["mean_confidence"] == pytest.approx(clusters.probabilities.max(axis=1).mean())
        assert facts["diagnostics"]["modularity"] == pytest.approx(2 / 3, abs=0.01)
        assert facts["diagnostics"]["warnings"] == []
        assert facts["against_labels"] == {"accuracy": 1.0, "nmi": 1.0, "ari": 1.0}
        assert [Path(name).name for name in facts["files"]] == ["small.clusters.h5", "small.model.safetensors"]

    def test_doubts_are_lines_on_stderr_and_in_json(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.ones((50, 3)))
        command = [sys.executable, "-m", "cceclust", "fit", tmp_path / "x.npy", "-k", "3", "--json"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        (said,) = (text for text in json.loads(result.stdout)["diagnostics"]["warnings"] if "empty" in text)
        assert result.stderr.count(f"Warning: {said}\n") == 1


class TestOptions:
    def test_the_help_is_short_and_fits_80_columns(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        assert run(["fit", "--help"]) == 0
        out = capsys.readouterr().out
        assert len(set(re.findall(r"^│[ *]+(--[a-z-]+)", out, re.MULTILINE))) <= 18
        assert all(len(line) <= 80 for line in out.splitlines())
        assert "…" not in out.replace("P,P,…", "")
        assert "<=" not in out
        assert "$ cceclust fit" in out

    def test_options_reach_the_fit(self, small_features: Path) -> None:
        options = ["--prior", "0.5,0.25,0.25", "--scale", "overall", "--seed", 5, "--max-rows", 100]
        assert fit(small_features, *options) == 0
        found = read_clusters(small_features.with_suffix(".clusters.h5"))
        expected = {
            "method": "cce", "n_clusters": 3, "prior": [0.5, 0.25, 0.25], "scale": "overall", "max_rows": 100,
            "random_state": 5,
        }  # fmt: skip
        assert found.parameters | expected == found.parameters
        assert found.diagnostics["trained_rows"] == 100

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ("--method sela", "'sela' is not one of 'cce', 'kmeans'"),
            ("--method kmeans --prior 1,0,0", "--prior: cannot be used with --method kmeans"),
            ("--method kmeans --scale auto", "--scale: cannot be used with --method kmeans"),
            ("--method kmeans -k auto", "--k: --method kmeans needs a number of clusters"),
            ("--scale rows", "'rows' is not one of 'auto', 'overall', 'columns'"),
            ("--prior a,b,c", "expected equal, or numbers such as 0.5,0.3,0.2"),
            ("--prior 1,0", "prior has 2 entries, but there are 3 clusters"),
            ("--prior .5,.3,.3", "prior sums to 1.1, expected 1"),
            ("--prior equal --k auto", "--prior: needs a number of clusters; give it with --k N"),
            ("--max-rows 0", "'0'; expected a whole number from 1 to 2,147,483,647"),
            ("--seed 4294967296", "'4294967296'; expected a whole number from 0 to 4,294,967,295"),
            ("--k 99999999999999999999", "expected a number of at least 1"),
            ("--set tol=0", "No such option: --set"),
        ],
    )
    def test_misuse_exits_2_and_names_the_option(
        self, options: str, said: str, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["fit", str(small_features), "-k", "3", *options.split()]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in err.replace("'--prior'", "--prior")
        assert err.count("\n") == 1
        assert names(small_features.parent) == ["small.h5"]


class TestBadData:
    @pytest.mark.parametrize(
        ("matrix", "k", "said"),
        [
            (np.zeros((5, 3)), 10, "10 clusters were asked for, but there are only 5 rows"),
            (np.array([[1.0], [np.nan]]), 1, "row 1 contains NaN or infinity"),
            (np.array([["a"], ["b"]]), 2, "expected numbers"),
            (np.zeros(5), 2, r"has shape \(5,\); expected a matrix"),
            (np.zeros((0, 5)), 2, "not empty"),
        ],
    )
    @pytest.mark.parametrize("method", ["cce", "kmeans"])
    def test_one_line_and_exit_1(
        self, method: str, matrix: Any, k: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        np.save(tmp_path / "x.npy", matrix)
        assert fit(tmp_path / "x.npy", "--method", method, k=k) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert re.search(said, err)
        assert names(tmp_path) == ["x.npy"]

    @pytest.mark.parametrize("labels", [np.full(120, 0.5), np.full(120, -1)])
    def test_true_labels_that_cannot_be_scored_spoil_nothing(
        self, tmp_path: Path, labels: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_features(tmp_path / "x.h5", np.random.default_rng(0).normal(size=(120, 4)), labels=labels)
        assert fit(tmp_path / "x.h5") == 0
        out = capsys.readouterr().out
        assert "Wrote" in out
        assert "ACC" not in out


class TestNumberOfClusters:
    @pytest.mark.parametrize("k", ["auto", "2..6", "2,3,6"])
    def test_it_is_chosen_among_candidates(
        self, k: str, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["fit", str(small_features), "-k", k, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["n_clusters"] == 3
        assert 3 in dict(facts["levels"])
        assert facts["levels"] == read_clusters(small_features.with_suffix(".clusters.h5")).levels.tolist()

    def test_noise_is_warned_of(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(300, 4)))
        assert run(["fit", str(tmp_path / "x.npy"), "--quiet"]) == 0
        err = capsys.readouterr().err
        assert "Warning: no number of clusters stands out; use --k N to split the rows anyway\n" in err

    def test_the_edge_of_what_was_allowed_is_warned_of(
        self, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["fit", str(small_features), "--k", "4,5"]) == 0
        out, err = capsys.readouterr()
        assert "4 clusters were taken, but numbers beyond those of --k are more reproducible" in err
        assert "Number   3 to 4 clusters are about as reproducible; 4 taken" in out

    @pytest.mark.parametrize("k", ["0..5", "30..2", "2..", "..3", "2..x", "2,,3", "0,3", "", "AUTO", "2..99999999999"])
    def test_what_is_no_number_exits_2(self, k: str, small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["fit", str(small_features), f"--k={k}"]) == 2
        assert "expected a number of at least 1, auto, a range such as 2..30" in capsys.readouterr().err
