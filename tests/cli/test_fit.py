from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cceclust.cli.fit import METHOD_NAMES, OPTIONS, settings_for
from cceclust.cli.main import run
from cceclust.estimators import CCEClassifier, CCEClusterer
from cceclust.estimators.methods import METHODS
from cceclust.io import read_clusters, read_model, write_features

pytestmark = pytest.mark.filterwarnings("ignore::cceclust.errors.ClusteringWarning")

FAST = ("--restarts", "2", "--set", "max_epochs=30", "--set", "n_jobs=1")


def fit(features: Path, *options: Any, k: int = 3, fast: bool = True) -> int:
    return run(["fit", str(features), "-k", str(k), *(FAST if fast else ()), *map(str, options)])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestOutput:
    def test_clusters_and_model_are_written_beside_the_features(
        self, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(small_features) == 0
        assert names(small_features.parent) == ["small.clusters.h5", "small.h5", "small.model.safetensors"]
        clusters = read_clusters(small_features.with_suffix(".clusters.h5"))
        model = read_model(small_features.with_suffix(".model.safetensors"))
        assert clusters.labels.shape == (120,)
        assert model.coef.shape == (3, 6)
        out, err = capsys.readouterr()
        assert err == ""
        assert out.count("Wrote ") == 2

    def test_the_summary_says_what_a_person_wants_to_know(
        self, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fit(small_features)
        out = capsys.readouterr().out
        assert "120 rows in 3 clusters" in out
        assert len(re.findall(r"^ +[012] +█+ +40", out, re.MULTILINE)) == 3
        assert re.search(r"Mean confidence +(0\.9\d\d|1\.000)", out)
        assert re.search(
            r"Modularity +0\.667 on the neighbour graph; K-means, of \d candidates from 0\.667 to 0\.667; "
            r"(\d) of the other \1 found the same clusters",
            out,
        )
        assert re.search(r"Time +\d+\.\d s, \d+ epochs", out)
        assert "ACC 1.000   NMI 1.000   ARI 1.000   (labels were used for this line only)" in out

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--scale", "columns", "--set", "curved=false"], "Columns          scaled one by one"),
            (["--scale", "directions", "--set", "curved=false"], "Directions       evened out"),
            (["--scale", "overall", "--set", "curved=true"], "Borders          curved"),
            (["--scale", "overall", "--set", "curved=false"], None),
        ],
    )
    def test_the_summary_says_what_was_done_to_the_space(
        self, small_features: Path, options: list[str], said: str | None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows = np.random.default_rng(0).normal(size=(300, 4))
        rows[:, :2] *= np.linalg.norm(rows, axis=1, keepdims=True)
        np.save(small_features.with_suffix(".npy"), rows)
        assert fit(small_features.with_suffix(".npy"), *options) == 0
        words = re.findall(r"^(?:Columns|Directions|Borders) .*$", capsys.readouterr().out, re.MULTILINE)
        assert len(words) == (said is not None)
        assert said is None or words[0].startswith(said)

    def test_without_labels_nothing_is_said_of_them(
        self, tmp_path: Path, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(50, 3)))
        fit(tmp_path / "x.npy")
        assert "ACC" not in capsys.readouterr().out

    def test_json_has_the_same_facts(self, small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(small_features, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        clusters = read_clusters(small_features.with_suffix(".clusters.h5"))
        assert facts["n_samples"] == 120
        assert facts["n_clusters"] == 3
        assert facts["sizes"] == np.bincount(clusters.labels).tolist()
        assert facts["mean_confidence"] == pytest.approx(clusters.probabilities.max(axis=1).mean())
        assert facts["loss"] == clusters.diagnostics["loss"]
        assert facts["diagnostics"]["modularity"] == pytest.approx(2 / 3, abs=0.01)
        assert facts["against_labels"] == {"accuracy": 1.0, "nmi": 1.0, "ari": 1.0}
        assert facts["diagnostics"]["converged"] is True
        assert facts["diagnostics"]["warnings"] == []
        assert facts["parameters"]["n_init"] == 2
        assert [Path(name).name for name in facts["files"]] == ["small.clusters.h5", "small.model.safetensors"]

    def test_doubts_are_said_once_on_stderr_and_are_in_json(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        np.save(tmp_path / "x.npy", np.ones((50, 3)))
        assert fit(tmp_path / "x.npy") == 0
        assert "clusters are empty" not in capsys.readouterr().out
        assert fit(tmp_path / "x.npy", "--json", "--force") == 0
        said = json.loads(capsys.readouterr().out)["diagnostics"]["warnings"]
        assert any("2 of 3 clusters are empty" in sentence for sentence in said)
        result = subprocess.run(
            [sys.executable, "-m", "cceclust", "fit", tmp_path / "x.npy", "-k", "3", "-q", "-f", *FAST],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert result.stdout == ""
        assert result.stderr.count("Warning: 2 of 3 clusters are empty; try another fairness") == 1

    def test_quiet_prints_nothing(self, small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(small_features, "--quiet") == 0
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("ending", ["h5", "csv", "npy"])
    def test_the_ending_chooses_the_format(self, ending: str, small_features: Path, tmp_path: Path) -> None:
        out, model = tmp_path / f"out.{ending}", tmp_path / "head.safetensors"
        assert fit(small_features, "--out", out, "--model", model) == 0
        assert names(tmp_path) == sorted(["small.h5", out.name, model.name])

    def test_a_report_can_be_had_at_once(self, small_features: Path) -> None:
        assert fit(small_features, "--report") == 0
        assert small_features.with_suffix(".report.html").read_text("utf-8").startswith("<!doctype html>")

    def test_existing_files_are_kept_unless_forced(
        self, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        target = small_features.with_suffix(".model.safetensors")
        target.write_text("precious")
        assert fit(small_features) == 1
        assert target.read_text() == "precious"
        assert names(small_features.parent) == ["small.h5", "small.model.safetensors"]
        assert "small.model.safetensors exists already; use --force" in capsys.readouterr().err
        assert fit(small_features, "--force") == 0
        assert read_model(target).coef.shape == (3, 6)


class TestOptions:
    def test_every_parameter_of_every_method_is_an_option_or_a_setting(self) -> None:
        for method in METHODS:
            if method != "kmeans":
                assert set(METHODS[method]().get_params()) <= set(OPTIONS) | set(settings_for(method))
        assert set(CCEClassifier().get_params()) <= set(OPTIONS) | set(settings_for("cce", has_labels=True))
        assert set(METHOD_NAMES) == set(METHODS)

    def test_the_help_is_short_and_fits_80_columns(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        assert run(["fit", "--help"]) == 0
        out = capsys.readouterr().out
        assert len(set(re.findall(r"^│[ *]+(--[a-z-]+)", out, re.MULTILINE)) - {"--help"}) <= 24
        assert all(len(line) <= 80 for line in out.splitlines())
        assert "…" not in out.replace("P,P,…", "")
        assert "<=" not in out

    def test_settings_are_listed_with_their_defaults(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["fit", "--set", "help"]) == 0
        out = capsys.readouterr().out
        for text in ("max_iter=5", "n_neighbors=auto", "sharpness=25", "label_weight=1"):
            assert text in out

    def test_the_paper_s_preset_is_the_estimator_s(self, small_features: Path) -> None:
        assert fit(small_features, "--preset", "paper", "--seed", 1, fast=False) == 0
        found = read_clusters(small_features.with_suffix(".clusters.h5")).parameters
        assert found == {"method": "cce", **CCEClusterer.paper(3, random_state=1).get_params()}

    def test_options_reach_the_estimator(self, small_features: Path) -> None:
        options = (
            "--prior 0.5,0.25,0.25 --seed 5 --restarts 3 --scale overall --set fairness=3 --set weight_decay=0.1 "
            "--set max_iter=7 --set n_neighbors=2 --set neighbor_weight=0.5 --set standardize=false "
            "--set batch_size=60 --set learning_rate=0.2 --set learning_rate_schedule=constant --set tol=0 "
            "--set max_epochs=12 --set n_jobs=2 --set n_components=4 --set init=k-means"
        )
        assert fit(small_features, *options.split(), fast=False) == 0
        found = read_clusters(small_features.with_suffix(".clusters.h5")).parameters
        expected = {
            "method": "cce", "n_clusters": 3, "fairness": 3.0, "prior": [0.5, 0.25, 0.25], "weight_decay": 0.1,
            "max_iter": 7, "n_neighbors": 2, "neighbor_weight": 0.5, "standardize": False, "batch_size": 60,
            "learning_rate": 0.2, "learning_rate_schedule": "constant", "tol": 0.0, "random_state": 5, "n_init": 3,
            "max_epochs": 12, "n_jobs": 2, "verbose": 0, "n_components": 4,
            "init": "k-means", "graph_candidates": True, "curved": "auto", "scale": "overall",
        }  # fmt: skip
        assert found == expected

    def test_auto_can_be_asked_for(self, small_features: Path) -> None:
        names = ("weight_decay", "max_epochs", "n_neighbors", "n_components", "init")
        options = [part for name in names for part in ("--set", f"{name}=auto")]
        assert fit(small_features, *options, fast=False) == 0

    @pytest.mark.parametrize("method", METHOD_NAMES)
    def test_every_method_runs(self, method: str, small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
        options = ("--restarts", "2") if method == "kmeans" else FAST
        assert fit(small_features, "--method", method, *options, "--json", fast=False) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["parameters"]["method"] == method
        assert facts["sizes"] == [40, 40, 40]

    def test_the_seed_is_honoured_and_equals_the_estimator_s(self, small_features: Path) -> None:
        from cceclust.io import open_features

        assert fit(small_features, "--seed", 3) == 0
        with open_features(small_features) as features:
            model = CCEClusterer(3, n_init=2, max_epochs=30, random_state=3).fit(features.array())
        found = read_model(small_features.with_suffix(".model.safetensors"))
        np.testing.assert_array_equal(found.coef, model.coef_)
        labels = read_clusters(small_features.with_suffix(".clusters.h5")).labels
        np.testing.assert_array_equal(labels, model.labels_)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ("--method foo", "'foo' is none of cce, cce-pgd"),
            ("--method kmeans --set max_epochs=3", "there is no setting 'max_epochs' here"),
            ("--method kmeans --prior 1,0,0", "--prior: method kmeans has no such parameter"),
            ("--method sela --scale auto", "--scale: method sela has no such parameter"),
            ("--method migd --set n_neighbors=3", "there is no setting 'n_neighbors' here"),
            ("--set sharpness=3", "there is no setting 'sharpness' here"),
            ("--set n_init=3", "n_init has an option of its own: --restarts"),
            ("--scale rows", "'rows' is none of auto, overall, columns"),
            ("--set tolerance=3", "there is no setting 'tolerance' here"),
            ("--preset default", "'default' is not a preset; there is: paper"),
            ("--preset paper --method sela", "is for method cce without labels"),
            ("--prior a,b,c", "expected numbers separated by commas"),
            ("--prior 1,0", "prior has 2 entries, but there are 3 clusters"),
            ("--set weight_decay=lots", "expected auto or a number"),
            ("--set max_epochs=1.5", "expected auto or a whole number"),
            ("--set learning_rate_schedule=linear", "expected cosine or constant"),
            ("--restarts 0", "'0'; expected a number from 1 to 2,147,483,647"),
            ("--set fairness=-1", "fairness=-1.0; expected a number of at least 0"),
            ("--seed 4294967296", "'4294967296'; expected a number from 0 to 4,294,967,295"),
            ("--set learning_rate=0", "learning_rate=0.0; expected a number above 0"),
            ("--set learning_rate=inf", "learning_rate=inf; expected a number above 0"),
            ("--method sela --set sharpness=0", "sharpness=0.0; expected a number above 0"),
            ("--method cce-pgd --set step_size=0", "step_size=0.0; expected a number above 0"),
            ("--set weight_decay=-1", "weight_decay=-1.0; expected a number of at least 0"),
            ("--set weight_decay=nan", "weight_decay=nan; expected a number of at least 0"),
            ("--set max_epochs=0", "max_epochs=0; expected a whole number of at least 1"),
            ("--set n_neighbors=-1", "n_neighbors=-1; expected a whole number of at least 0"),
            ("--labels labels --set sharpness=3", "there is no setting 'sharpness' here"),
            ("--memory lots", "'lots'; expected a size such as 500MB"),
            ("--memory 0", "expected a size"),
            ("--memory -1GB", "expected a size"),
        ],
    )
    def test_misuse_exits_2_and_names_the_option(
        self, options: str, said: str, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["fit", str(small_features), "-k", "3", *options.split()]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in re.sub(r"[\s│]+", " ", err)
        assert names(small_features.parent) == ["small.h5"]

    @pytest.mark.parametrize("k", ["0", "-3", "two", "2.5"])
    def test_a_number_of_clusters_that_is_none_exits_2(self, k: str, small_features: Path) -> None:
        assert run(["fit", str(small_features), f"--k={k}"]) == 2


@pytest.mark.parametrize(
    ("command", "largest"),
    [
        ("neighbors x.h5", 2**32 - 1),
        ("deep images -k 2 -o run", 2**32 - 1),
    ],
)
def test_seeds_that_no_generator_takes_are_misuse_everywhere(
    command: str, largest: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.split(), "--seed", str(largest + 1)]) == 2
    assert re.search(rf"(less than or equal|from 0) to {largest}", re.sub(r"[\s│]+", " ", capsys.readouterr().err))


def test_the_largest_seed_works(small_features: Path) -> None:
    assert fit(small_features, "--seed", 2**32 - 1) == 0


@pytest.mark.parametrize("command", ["deep images -k 2 -o run"])
def test_a_network_s_learning_rate_of_0_is_misuse(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--learning-rate", "0"]) == 2
    assert "0; expected a number above 0" in re.sub(r"[\s│]+", " ", capsys.readouterr().err)


class TestMemory:
    @pytest.mark.parametrize(
        ("text", "size"),
        [("1000", 1000), ("1kb", 1000), ("1.5GB", 1_500_000_000), (" 2 MB ", 2_000_000), ("3T", 3 * 10**12), ("7B", 7)],
    )
    def test_sizes_are_read_as_people_write_them(self, text: str, size: int) -> None:
        from cceclust.cli.options import parse_bytes

        assert parse_bytes(text) == size

    def test_large_files_are_streamed_and_clustered_as_well(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        classes = np.repeat([0, 1, 2], 1000)
        X = np.random.default_rng(0).normal(size=(3000, 5)) + 6 * np.eye(3, 5)[classes]
        write_features(tmp_path / "sorted.h5", X.astype(np.float32), labels=classes)
        assert fit(tmp_path / "sorted.h5", "--memory", "25KB", "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["diagnostics"]["streamed"] is True
        assert facts["against_labels"]["accuracy"] > 0.95

    def test_a_sample_is_stated(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cceclust.choices.MOST_ROWS_KEPT", 1000)
        classes = np.repeat([0, 1, 2], 1000)
        X = np.random.default_rng(0).normal(size=(3000, 5)) + 6 * np.eye(3, 5)[classes]
        write_features(tmp_path / "x.h5", X.astype(np.float32))
        assert fit(tmp_path / "x.h5", "--memory", "25KB") == 0
        assert "a random sample of 1,000 rows" in capsys.readouterr().out

    def test_too_little_memory_says_how_much_is_needed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        np.save(tmp_path / "x.npy", np.zeros((3000, 5), np.float32))
        assert fit(tmp_path / "x.npy", "--memory", "1KB") == 1
        assert "allow at least 10,000 bytes" in capsys.readouterr().err


class TestBadData:
    @pytest.mark.parametrize(
        ("matrix", "k", "said"),
        [
            (np.zeros((5, 3)), 10, "n_samples=5 should be >= n_clusters=10"),
            (np.array([[1.0], [np.nan]]), 1, "NaN or infinity in 1 of 2 rows, first in row 1"),
            (np.array([["a"], ["b"]]), 2, "expected numbers"),
            (np.zeros(5), 2, r"has shape \(5,\); expected a matrix"),
            (np.zeros((0, 5)), 2, "is empty"),
        ],
    )
    @pytest.mark.parametrize("method", ["cce", "kmeans"])
    def test_one_line_and_exit_1(
        self, method: str, matrix: Any, k: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        np.save(tmp_path / "x.npy", matrix)
        assert run(["fit", str(tmp_path / "x.npy"), "-k", str(k), "--method", method]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert re.search(said, err)
        assert names(tmp_path) == ["x.npy"]

    @pytest.mark.parametrize("name", ["nothing.h5", ".", "folder", "text.txt"])
    def test_what_is_no_feature_file_is_one_line(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("folder").mkdir()
        Path("text.txt").write_text("hello")
        assert run(["fit", name, "-k", "2"]) == 1
        assert capsys.readouterr().err.count("\n") == 1

    def test_one_cluster_works(self, small_features: Path) -> None:
        assert fit(small_features, k=1) == 0
        assert not read_clusters(small_features.with_suffix(".clusters.h5")).labels.any()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(
    ("sent", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_in_the_middle_of_a_fit_is_one_line_and_leaves_no_file(
    tmp_path: Path, sent: signal.Signals, code: int, said: str
) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5000, 50)))
    script = """
import os, signal
from cceclust.cli import main
from cceclust.training import engine
original = engine.RestartGroup.train_on
def train_on(self, *arguments):
    os.write(1, b"started\\n")
    original(self, *arguments)
engine.RestartGroup.train_on = train_on
# In the background of a shell, Ctrl-C is ignored from the start.
signal.signal(signal.SIGINT, signal.default_int_handler)
main.main()
"""
    command = [sys.executable, "-c", script, "fit", str(tmp_path / "x.npy"), "-k", "5", "--set", "n_neighbors=0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, "--set", "max_epochs=100000", "--set", "tol=0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.3)
        process.send_signal(sent)
        _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err == f"Error: {said}; no file was left half-written\n"
    assert names(tmp_path) == ["x.npy"]


@pytest.mark.parametrize("labels", [np.full(120, 0.5), np.full(120, -1)])
def test_true_labels_that_cannot_be_scored_spoil_nothing(
    tmp_path: Path, labels: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write_features(tmp_path / "x.h5", np.random.default_rng(0).normal(size=(120, 4)), labels=labels)
    assert run(["fit", str(tmp_path / "x.h5"), "-k", "3", "--set", "max_epochs=1"]) == 0
    out = capsys.readouterr().out
    assert "Wrote" in out
    assert "ACC" not in out


def test_more_clusters_than_rows_are_refused_before_memory_is_asked_for(
    small_features: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fit", str(small_features), "-k", "2000000000"]) == 1
    assert "n_samples=120 should be >= n_clusters=2000000000" in capsys.readouterr().err
    assert run(["fit", str(small_features), "-k", "99999999999999999999"]) == 2


class TestNumberOfClusters:
    def test_it_is_found_without_k(self, small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["fit", str(small_features), *FAST]) == 0
        out = capsys.readouterr().out
        assert "120 rows in 3 clusters" in out
        assert re.search(r"^  ▁?[▂-█]+.*  2 to 24 clusters\n   \^ 3$", out, re.MULTILINE)
        assert re.search(r"^Chosen: 3 clusters \(score 0\.\d{3}\)", out, re.MULTILINE)
        assert read_model(small_features.with_suffix(".model.safetensors")).parameters["n_clusters"] == 3

    @pytest.mark.parametrize("k", ["auto", "2..6", "2,3,6"])
    @pytest.mark.parametrize("method", ["cce", "migd", "kmeans"])
    def test_it_is_chosen_among_candidates(
        self, method: str, k: str, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fast = () if method == "kmeans" else FAST
        assert run(["fit", str(small_features), "-k", k, "--method", method, "--json", *fast]) == 0
        facts = json.loads(capsys.readouterr().out)
        tried = {"auto": range(2, 25), "2..6": range(2, 7), "2,3,6": (2, 3, 6)}[k]
        assert facts["n_clusters"] == 3
        assert list(map(int, facts["k_scores"])) == list(tried)
        assert max(facts["k_scores"], key=facts["k_scores"].get) == "3"
        table = read_clusters(small_features.with_suffix(".clusters.h5")).k_search
        assert table.scores.tolist() == pytest.approx(list(facts["k_scores"].values()))
        assert 3 in table.levels

    def test_noise_is_one_cluster_and_says_so(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(300, 4)))
        assert run(["fit", str(tmp_path / "x.npy"), *FAST]) == 0
        out = capsys.readouterr().out
        assert "300 rows in 1 cluster\n" in out
        (said,) = read_clusters(tmp_path / "x.clusters.h5").diagnostics["warnings"]
        assert said.startswith("nothing in the graph of neighbours speaks for clusters")
        assert "Chosen" not in out
        assert read_clusters(tmp_path / "x.clusters.h5").labels.max() == 0

    @pytest.mark.parametrize("k", ["0..5", "30..2", "2..", "..3", "2..x", "2,,3", "0,3", "", "AUTO", "2..99999999999"])
    def test_what_is_no_number_exits_2(self, k: str, small_features: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["fit", str(small_features), f"--k={k}"]) == 2
        assert "expected a number of at least 1, auto, a range such as 2..30" in re.sub(
            r"[\s│]+", " ", capsys.readouterr().err
        )

    @pytest.mark.parametrize(
        ("options", "said", "code"),
        [
            ("--prior 0.5,0.5", "a prior needs a number of clusters", 2),
            ("--k 2..30 --prior 0.5,0.5", "a prior needs a number of clusters", 2),
            ("--k 2..2000000000", "numbers are compared up to 1000", 2),
            ("--k auto --labels labels", "labels need a number of clusters", 2),
            ("--k 2..300", "n_clusters goes up to 300, but there are 120 rows", 1),
        ],
    )
    def test_what_cannot_be_searched_is_one_line(
        self, options: str, said: str, code: int, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["fit", str(small_features), *options.split()]) == code
        assert said in re.sub(r"[\s│]+", " ", capsys.readouterr().err)
        assert names(small_features.parent) == ["small.h5"]

    def test_labels_without_k_make_a_cluster_for_each_class(
        self, small_features: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["fit", str(small_features), "--labels", "labels", "--json", *FAST]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["n_clusters"] == 3
        assert facts["k_scores"] is None
