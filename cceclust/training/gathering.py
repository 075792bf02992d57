"""What training needs of the rows: rows in memory as they are, or one pass over rows that are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cceclust import choices
from cceclust.errors import InputError
from cceclust.training.directions import even_out
from cceclust.training.k_search import KSearch, search_rows
from cceclust.training.neighbors import as_neighbors
from cceclust.training.progress import OnProgress, Progress, counting_rows, silent
from cceclust.training.robustness import (
    Middle,
    are_few,
    columns_to_divide_by,
    distances_of,
    find_middle,
    scaled_columns,
)
from cceclust.training.rows import ArrayRows, DistantRows, Rows, SparseRows
from cceclust.training.settings import FitSettings
from cceclust.training.space import TrainingSpace, component_count, find_axes, training_space
from cceclust.training.spectrum import measure_spectrum, sample_rows
from cceclust.training.standardization import (
    Standardization,
    block_moments,
    measure,
    refuse_what_is_not_finite,
    standardization_of,
)

__all__ = ["Gathered", "gather"]


@dataclass(frozen=True)
class Gathered:
    """Rows to train on, in memory, and what was found out about all rows.

    Attributes
    ----------
    space : TrainingSpace
        Holds the rows to train on: all, or a random sample of them.
    which : slice or ndarray
        Their numbers among all rows, ascending.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each of all rows, 0 for rows far from all others.
    n_far : int
        Number of such rows.
    columns : ndarray of shape (n_features,) or None
        What each column was divided by first, if columns were scaled one by one.
    search : KSearch or None
        How the number of clusters was chosen; None if it was given.
    """

    space: TrainingSpace
    which: slice | NDArray[np.intp]
    sample_weight: NDArray[Any]
    n_far: int
    columns: NDArray[np.float64] | None
    search: KSearch | None

    @property
    def weights(self) -> NDArray[Any]:
        """Weight of each row to train on."""
        return self.sample_weight[self.which]

    @property
    def has_all_rows(self) -> bool:
        """Whether all rows are trained on."""
        return isinstance(self.which, slice)


def gather(
    rows: Rows,
    settings: FitSettings,
    sample_weight: NDArray[Any],
    *,
    neighbors: Any,
    labelled: NDArray[np.intp] | None,
    seed: int,
    on_progress: OnProgress = silent,
) -> Gathered:
    """Measure all rows, and bring what is trained on into memory, projected if it is wide.

    Parameters
    ----------
    rows : Rows
        The features.
    settings : FitSettings
        How to fit.
    sample_weight : ndarray of shape (n_samples,)
        Weight of each row.
    neighbors : array-like, sparse matrix or None
        Neighbours that were given; the number of clusters is searched for on them.
    labelled : ndarray of shape (n_labelled,) or None
        Numbers of the rows with labels, if there are any. They are trained on first of all, and never left out for
        being far.
    seed : int
        Decides the samples.
    on_progress : callable, optional
        Called with a :class:`~cceclust.training.progress.Progress` from time to time.
    """
    if settings.scale == "directions" and isinstance(rows, SparseRows):
        raise InputError("scale='directions' needs dense features; set scale='overall', or convert them")
    if settings.scale == "directions" and rows.shape[1] > choices.MOST_COLUMNS_TO_EVEN_OUT:
        raise InputError(
            f"scale='directions' is for at most {choices.MOST_COLUMNS_TO_EVEN_OUT} features, got {rows.shape[1]}; "
            "set scale='overall'"
        )
    options: dict[str, Any] = {"neighbors": neighbors, "labelled": labelled, "seed": seed, "on_progress": on_progress}
    if isinstance(rows, ArrayRows | SparseRows):
        return gather_in_memory(rows, settings, sample_weight, **options)
    assert isinstance(rows, DistantRows)
    return gather_in_one_pass(rows, settings, sample_weight, **options)


def gather_in_memory(
    rows: ArrayRows | SparseRows,
    settings: FitSettings,
    sample_weight: NDArray[Any],
    *,
    neighbors: Any,
    labelled: NDArray[np.intp] | None,
    seed: int,
    on_progress: OnProgress = silent,
) -> Gathered:
    """Measure rows in memory, and project them if they are wide."""
    n_far, columns, n_threads = 0, None, settings.n_threads
    on_progress(Progress("Measuring rows"))
    if settings.standardize and labelled is None and isinstance(rows, ArrayRows):
        standardization, sample_weight, n_far = measure_near_rows(rows, sample_weight, seed=seed, n_threads=n_threads)
    else:
        standardization = measure(rows, sample_weight, standardize=settings.standardize, n_threads=n_threads)
    if standardization.deviations is not None:
        columns = columns_to_divide_by(standardization.deviations, settings.scale, is_dense=isinstance(rows, ArrayRows))
    if columns is not None:
        rows = scaled_columns(rows, columns)
        standardization = measure(rows, sample_weight, standardize=True, n_threads=n_threads)
    # Neighbours that are given were found among the rows as they are, and labels decide by their loss.
    is_open = neighbors is None and labelled is None
    space = plain = TrainingSpace.of_rows(rows, standardization)
    if settings.n_components in ("auto", 0):
        space = evened_space(plain, settings, sample_weight, is_open=is_open, in_place=columns is not None, seed=seed)
    search = search_candidates(space.rows, settings, sample_weight, neighbors, seed, on_progress)
    if space is plain:
        space = plain = training_space(
            rows,
            standardization,
            sample_weight,
            settings.n_components,
            settings.n_clusters if search is None else search.chosen,
            is_centred=settings.standardize,
            seed=seed,
            n_threads=settings.n_threads,
        )
        if plain.axes is not None:
            space = evened_space(plain, settings, sample_weight, is_open=is_open, in_place=True, seed=seed)
    return Gathered(space, slice(None), sample_weight, n_far, columns, search)


def measure_near_rows(
    rows: ArrayRows, sample_weight: NDArray[Any], *, seed: int, n_threads: int
) -> tuple[Standardization, NDArray[Any], int]:
    """Find mean and scale of all rows but those far away, in one pass; also return the weights without these rows."""
    middle = find_middle(sample_rows(rows, sample_weight, seed, most=choices.ROWS_FOR_MIDDLE)[0])
    measured = partial(measure_block, middle=middle, shift=middle.point)
    moments = Moments.of_none(rows.shape)
    for where, part in rows.map_blocks(measured, sample_weight, n_threads=n_threads):
        moments.add(where, part)
    sums, sample_weight, n_far = moments.without_far_rows(rows, sample_weight)
    total = sample_weight.sum(dtype=np.float64)
    return standardization_of(sums[0], sums[1], middle.point, total, rows.dtype), sample_weight, n_far


def evened_space(
    space: TrainingSpace,
    settings: FitSettings,
    sample_weight: NDArray[Any],
    *,
    is_open: bool,
    in_place: bool,
    seed: int,
) -> TrainingSpace:
    """Return the space with its directions evened out if that is asked for, or left open and worthwhile."""
    is_certain = settings.scale == "directions"
    if not is_certain:
        is_open &= settings.scale == "auto" and settings.standardize and settings.is_judged
        is_open &= isinstance(space.rows, ArrayRows) and space.rows.shape[1] <= choices.MOST_COLUMNS_TO_EVEN_OUT
        if not is_open:
            return space
        spectrum = measure_spectrum(space.rows, space.standardization, sample_weight, seed=seed)
        if not choices.may_even_out(spectrum.variances):
            return space
    return even_out(space, sample_weight, seed=seed, n_jobs=settings.n_jobs, is_certain=is_certain, in_place=in_place)


def gather_in_one_pass(
    rows: DistantRows,
    settings: FitSettings,
    sample_weight: NDArray[Any],
    *,
    neighbors: Any,
    labelled: NDArray[np.intp] | None,
    seed: int,
    on_progress: OnProgress = silent,
) -> Gathered:
    """Measure and project rows that are elsewhere in one pass, after a look at a sample of them.

    The sample says which columns to scale, along which axes to project and what is far; mean and scale are those of
    all rows. Rows are projected around the mean of the sample. What the two means differ by is known only after the
    pass, and is subtracted from each batch.
    """
    most = choices.rows_to_keep(rows.shape[1], rows.memory)
    which = rows_to_keep(sample_weight, labelled, most, seed)
    if neighbors is not None and not isinstance(which, slice):
        raise InputError(
            f"neighbours of {rows.shape[0]:,} rows were given, but {len(which):,} rows are trained on; give none, or "
            "allow more memory"
        )
    on_progress(Progress("Reading a sample"))
    looked_at = look_at_sample(rows, settings, sample_weight, finds_far=labelled is None, seed=seed)
    digest = partial(digest_block, looked_at=looked_at)
    is_kept = np.zeros(rows.shape[0], bool)
    is_kept[which] = True
    n_columns = rows.shape[1] if looked_at.axes is None else len(looked_at.axes)
    matrix, filled = rows.room_for((int(is_kept.sum()), n_columns)), 0
    moments = Moments.of_none(rows.shape)
    parts = rows.map_blocks(digest, sample_weight, is_kept, n_threads=settings.n_threads)
    for where, part in counting_rows(parts, "Measuring rows", rows.shape[0], on_progress):
        moments.add(where, part.moments)
        matrix[filled : filled + len(part.kept)] = part.kept
        filled += len(part.kept)
    sums, sample_weight, n_far = moments.without_far_rows(rows, sample_weight)
    origin = Standardization(np.zeros(rows.shape[1], rows.dtype), 1.0)
    if settings.standardize:
        shift = looked_at.centre.astype(np.float64)
        origin = standardization_of(sums[0], sums[1], shift, sample_weight.sum(dtype=np.float64), rows.dtype)
    plain = looked_at.space_of(ArrayRows(matrix), origin)
    gathered = Gathered(plain, which, sample_weight, n_far, looked_at.columns, None)
    is_open = neighbors is None and labelled is None
    space = evened_space(plain, settings, gathered.weights, is_open=is_open, in_place=True, seed=seed)
    gathered = replace(gathered, space=space)
    search = search_candidates(space.rows, settings, gathered.weights, neighbors, seed, on_progress)
    if search is not None:
        search = replace(search, rows=np.arange(rows.shape[0])[which][search.rows])
    return replace(gathered, search=search)


def rows_to_keep(
    sample_weight: NDArray[Any], labelled: NDArray[np.intp] | None, most: int, seed: int
) -> slice | NDArray[np.intp]:
    """Return the rows to train on: all, or a random choice among very many, in which those with labels come first."""
    if len(sample_weight) <= most:
        return slice(None)
    generator = np.random.default_rng(seed)
    has_label = np.zeros(len(sample_weight), bool)
    has_label[np.empty(0, np.intp) if labelled is None else labelled] = True
    kept = np.empty(0, np.intp)
    for pool in (has_label, ~has_label):
        candidates = np.flatnonzero(pool & (sample_weight > 0))
        count = min(most - len(kept), len(candidates))
        kept = np.append(kept, generator.choice(candidates, count, replace=False) if count else candidates[:0])
    return np.sort(kept)


@dataclass(frozen=True)
class Looked:
    """What a sample says about rows before the pass over all of them.

    Attributes
    ----------
    middle : Middle or None
        Their middle, to find rows far from it; None if no row counts as far.
    columns : ndarray of shape (n_features,) or None
        What each column is divided by first.
    centre : ndarray of shape (n_features,)
        What is subtracted from rows before they are projected.
    axes : ndarray of shape (n_components, n_features) or None
        What they are projected onto; None if they stay as they are.
    """

    middle: Middle | None
    columns: NDArray[np.float64] | None
    centre: NDArray[Any]
    axes: NDArray[Any] | None

    def space_of(self, kept: ArrayRows, origin: Standardization) -> TrainingSpace:
        """Return the space of the rows that were kept, given the mean and scale of all rows."""
        if self.axes is None:
            return TrainingSpace.of_rows(kept, origin)
        mean = (origin.mean - self.centre) @ self.axes.T
        return TrainingSpace(kept, Standardization(mean.astype(kept.dtype), origin.scale), origin, self.axes)


def look_at_sample(
    rows: Rows, settings: FitSettings, sample_weight: NDArray[Any], *, finds_far: bool, seed: int
) -> Looked:
    """Read a sample of rows, and decide what to do with all of them."""
    sample, weights = sample_rows(rows, sample_weight, seed, most=choices.ROWS_FOR_COMPONENTS)
    if not np.isfinite(sample).all():
        refuse_what_is_not_finite(rows)
    middle = find_middle(sample) if settings.standardize and finds_far else None
    if middle is not None:
        is_far = distances_of(sample, middle=middle) > choices.FAR
        if are_few(is_far):
            weights = np.where(is_far, 0.0, weights)
    found, columns = measure(ArrayRows(sample), weights, standardize=settings.standardize), None
    if found.deviations is not None:
        columns = columns_to_divide_by(found.deviations, settings.scale, is_dense=True)
    if columns is not None:
        sample /= columns
        found = measure(ArrayRows(sample), weights, standardize=True)
    # The most clusters that may be chosen, as components are found before their number is.
    tried = settings.candidates
    n_clusters = settings.n_clusters if tried is None else choices.MOST_CLUSTERS_TRIED if tried == "auto" else tried[-1]
    count = component_count(rows.shape[1], settings.n_components, n_clusters, is_centred=settings.standardize)
    axes = find_axes(sample, weights, found.mean, count, seed).astype(rows.dtype) if count else None
    return Looked(middle, columns, found.mean.astype(rows.dtype), axes)


@dataclass(frozen=True)
class Moments:
    """Sums over rows around a point, those far away apart.

    Attributes
    ----------
    near, far : ndarray of shape (2, n_features)
        Weighted sums and sums of squares: of most rows, and of those far away.
    is_far : ndarray of shape (n_rows,)
        Which rows are far away.
    """

    near: NDArray[np.float64]
    far: NDArray[np.float64]
    is_far: NDArray[np.bool_]

    @classmethod
    def of_none(cls, shape: tuple[int, int]) -> Moments:
        """Return sums to which no row was added yet."""
        return cls(np.zeros((2, shape[1])), np.zeros((2, shape[1])), np.zeros(shape[0], np.bool_))

    def add(self, where: slice, part: Moments) -> None:
        """Add the sums of a block of rows."""
        self.near[...] += part.near
        self.far[...] += part.far
        self.is_far[where] = part.is_far

    def without_far_rows(
        self, rows: Rows, sample_weight: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[Any], int]:
        """Return the sums that count, the weights with 0 for rows that do not, and the number of these rows.

        Raises
        ------
        InputError
            If a value is NaN or infinite, with the number of such rows and the first.
        """
        # A far row has a weight of 0 among the near ones, but 0 times infinity is not finite either.
        if not np.isfinite(self.near).all():
            refuse_what_is_not_finite(rows)
        if not are_few(self.is_far):
            return self.near + self.far, sample_weight, 0
        return self.near, np.where(self.is_far, sample_weight.dtype.type(0), sample_weight), int(self.is_far.sum())


def measure_block(block: NDArray[Any], weights: NDArray[Any], *, middle: Middle, shift: NDArray[np.float64]) -> Moments:
    """Sum up a block of rows around `shift`."""
    return moments_of(block, weights, far_rows(block, weights, middle), shift)


def far_rows(block: NDArray[Any], weights: NDArray[Any], middle: Middle | None) -> NDArray[np.bool_]:
    """Tell which rows with weight are far from the middle; without one, none is."""
    if middle is None:
        return np.zeros(len(block), np.bool_)
    return np.asarray((distances_of(block, middle=middle) > choices.FAR) & (weights > 0))


def moments_of(
    block: NDArray[Any], weights: NDArray[Any], is_far: NDArray[np.bool_], shift: NDArray[np.float64]
) -> Moments:
    """Sum up a block of rows around `shift`, of which some are far away."""
    near = np.stack(block_moments(block, np.where(is_far, weights.dtype.type(0), weights), shift=shift))
    far = np.zeros_like(near)
    if is_far.any():
        far += np.stack(block_moments(block[is_far], weights[is_far], shift=shift))
    return Moments(near, far, is_far)


@dataclass(frozen=True)
class Digest:
    """What one pass takes from a block of rows.

    Attributes
    ----------
    moments : Moments
        Sums around the centre.
    kept : ndarray of shape (n_kept, n_components or n_features)
        The rows to train on.
    """

    moments: Moments
    kept: NDArray[Any]


# What is not finite is found by the sums.
@np.errstate(over="ignore", invalid="ignore")
def digest_block(
    block: NDArray[Any], weights: NDArray[Any], is_kept: NDArray[np.bool_], *, looked_at: Looked
) -> Digest:
    """Measure a block of rows, and project those that are kept."""
    is_far = far_rows(block, weights, looked_at.middle)
    if looked_at.columns is not None:
        block = block * (1 / looked_at.columns).astype(block.dtype)
    moments = moments_of(block, weights, is_far, looked_at.centre.astype(np.float64))
    kept = block if is_kept.all() else block[is_kept]
    if looked_at.axes is not None:
        kept = (kept - looked_at.centre) @ looked_at.axes.T
    return Digest(moments, kept)


def search_candidates(
    rows: Rows,
    settings: FitSettings,
    sample_weight: NDArray[Any],
    neighbors: Any,
    seed: int,
    on_progress: OnProgress,
) -> KSearch | None:
    """Choose the number of clusters, unless it is given."""
    if settings.candidates is None:
        return None
    on_progress(Progress("Comparing numbers of clusters"))
    candidates = None if settings.candidates == "auto" else settings.candidates
    if neighbors is not None and as_neighbors(neighbors, rows.shape[0]).shape[1] < choices.LEAST_JUDGE_NEIGHBORS:
        neighbors = None
    return search_rows(
        rows, candidates, sample_weight=sample_weight, neighbors=neighbors, seed=seed, n_jobs=settings.n_jobs
    )
