"""Every automatic choice in one place: what "auto" stands for, and the numbers behind it.

Each number has one line on why it is what it is; docs/defaults.md has the measurements. Nothing here looks at data:
functions take what was measured (counts, variances) and return what to do. Other modules hold no such number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "candidates_for",
    "components_for",
    "decay_for",
    "directions_in",
    "epochs_for",
    "floor_repeats",
    "floor_rows",
    "is_crowded",
    "may_even_out",
    "neighbors_for",
    "restart_groups",
    "rows_compared",
    "rows_for_search",
    "rows_to_keep",
    "sample_for_kmeans",
    "steepness_for",
    "worth_of",
]

# --- How long to train ------------------------------------------------------------------------------------------------

# About this many steps of 250 rows were enough on every file of the protocol, however many rows there were,
STEPS = 800
# but every row should be seen a few times: ten times made no better clusters of 50,000 rows.
LEAST_EPOCHS = 4
# The learning rate falls along half a cosine to this part of itself: better than a constant rate on all files.
FINAL_RATE = 0.2
# Training stops early after this many epochs without improvement: one or two are within the noise of the batches.
PATIENCE = 3
# Training counts as settled where the loss of the last tenth of the epochs is within this part of the tenth before,
SETTLED_PART = 0.05
# or within this much of it: a loss near zero may fall by any part of itself without changing a label.
NEGLIGIBLE_LOSS = 2e-3
# partial_fit: the part of the running loss that each further piece of data leaves as it is.
RUNNING_LOSS_KEPT = 0.9


def epochs_for(n_rows: int, batch_size: int) -> int:
    """Return ``max_epochs="auto"``.

    Examples
    --------
    >>> epochs_for(2_000, 250), epochs_for(1_000_000, 250)
    (100, 4)
    """
    return max(LEAST_EPOCHS, round(STEPS * batch_size / max(n_rows, batch_size)))


# --- Restarts ---------------------------------------------------------------------------------------------------------

# Heads of a group share each batch that is read, but a group runs on one thread: five balance the two on two cores.
RESTARTS_IN_GROUP = 5
# Two labelings with this adjusted Rand index describe the same clusters.
SAME_CLUSTERS = 0.9
# The probabilities of all restarts are compared on all rows up to this size in bytes, beyond it on a random sample.
EVALUATION_BYTES = 64 << 20
# or where points times squared clusters, which the exact solver's time grows with, would exceed this.
EVALUATION_WORK = 50_000_000
# More rows than this change a mean loss by about a hundredth, and take longer than training; fewer than a batch of the
# paper are never taken.
EVALUATION_ROWS, LEAST_EVALUATION_ROWS = 5000, 250
# They are read this many at a time.
EVALUATION_PIECE = 4096
# Pseudo-labels for this comparison are found once, to this part of the loss, so they may take longer than in training.
EVALUATION_ITERATIONS = 1000
EVALUATION_TOLERANCE = 1e-6


def restart_groups(n_restarts: int) -> int:
    """Return how many groups train the restarts: at least two, for two threads; never depending on the machine."""
    return max(min(2, n_restarts), -(-n_restarts // RESTARTS_IN_GROUP))


# --- Candidates and their judge ---------------------------------------------------------------------------------------

# The paper's λ; used where heads do not differ, as with partial_fit, and for the loss that is reported.
FAIRNESS = 100.0
# The heads that are trained when nothing is fixed: start, fairness, whether the prior is that of the start's own sizes,
# and the factor of the automatic weight decay. Fairness 10 and 100 suit clusters of nearly equal size, fairness 1
# leaves their sizes to the data. Random starts become K-means starts where clusters are crowded.
HEAD_MIX: tuple[tuple[str, float, bool, float], ...] = (
    ("random", 10.0, False, 1.0),
    ("k-means", 10.0, False, 1.0),
    ("k-means", 100.0, False, 1.0),
    ("k-means", 100.0, False, 1.0),
    ("graph", 1.0, False, 1.0),
    ("graph", 1.0, True, 0.3),
)
# With so many clusters, one head is trained, from the graph: a batch has few rows of each cluster, so trained heads
# leave some empty, and training takes most of the time. K-means starts from the graph, too. And candidates are judged
# at the resolution at which the graph falls into as many parts: on 30 classes of equal size, accuracy rose by nine
# points, on unequal ones it fell by three.
MANY_CLUSTERS = 30
# Partitions of the graph beside them, which differ by the order in which rows are looked at; and some whose sizes may
# differ more. Graphs with more rows than this get one of each kind, from the same fine parts: growing parts takes long
# there, and more of them made no better clusters.
PARTITIONS, UNEVEN_PARTITIONS, ROWS_TO_SHARE_PARTS = 3, 2, 30_000
# With fewer parts than wanted, the resolution of a partition is raised by this factor, at most this many times.
RESOLUTION_STEP, MOST_RESOLUTION_STEPS = 1.25, 24
# Uneven ones are merged from this many times more parts, grown at this resolution at least.
FINE_PARTS, FINE_RESOLUTION = 2, 3.0
# Links between them count beside this power of the product of both sizes. With 1/2, large parts swallow all
# others; with 1, parts come out as even as by modularity.
POWER_OF_SIZES = 0.75
# Neighbours on which candidates are judged; 10 to 20 rank them alike. Given graphs of fewer than five say too little.
JUDGE_NEIGHBORS, LEAST_JUDGE_NEIGHBORS = 15, 5
# Heads are fitted to the refined labels of every candidate in this many steps of this many rows,
REFIT_STEPS, REFIT_BATCH = 300, 250
# with this part of the automatic weight decay: labels are given, so a head cannot saturate on a wrong answer.
REFIT_DECAY = 0.1
# Borders may curve along this many leading directions: 10 lost half a point on pixels, 24 gained nothing.
CURVED_AXES = 16
# Directions with a smaller part of the largest deviation, or of the largest mean, than this are rounding.
LEAST_DEVIATION = 1e-4
# Curved borders are kept where they predict this many standard errors more of the rows they were not fitted to, of this
# many rows in all; they are fitted to at most as many as 300 steps can tell apart.
CURVED_ERRORS, ROWS_TO_TEST_CURVES, ROWS_FOR_CURVES = 2.0, 4000, 20_000
# K-means is kept where its modularity is at most this many standard errors below the best,
FLOOR_ERRORS = 2.0
# unless the best other candidate separates less than this part of the pairs of neighbours that K-means does. It is also
# kept where it separates fewer than that one by so many standard errors, or where there are two clusters; but not if
# its sizes have less than HARDLY_DIVIDED of the entropy of equal ones, as then nearly all rows are in one cluster.
CLEARLY_FEWER, FEWER_ERRORS, HARDLY_DIVIDED = 0.6, 3.0, 0.25
# It is kept, too, where more than this part of the rows have only copies of themselves for neighbours, as the graph
# cannot judge then.
# Copies differ by less than the second part of the rows' scale: projecting them rounds by their place in a block.
MOST_COPIES, SAME_ROW = 0.5, 1e-5
# A cluster is missing if it has less than LEAST_SHARE of an equal share of the rows, unless less than MOSTLY_OUTSIDE of
# its rows' neighbours are outside of it. Candidates that miss more than MOST_MISSING of all clusters count only if
# all candidates miss that many.
LEAST_SHARE, MOSTLY_OUTSIDE, MOST_MISSING = 0.05, 0.5, 0.05
# Clusters of equal size are named as a rival if they are worse than the chosen ones by less than so many standard
# errors, and by less than this part of their modularity: of few rows, nearly all is within the error.
EVEN_RIVAL_ERRORS, EVEN_RIVAL_PART = 2.0, 0.03
# Candidates within this many standard errors of the best are hardly told apart from it. Of these, the modularity with
# so many of the nearest neighbours decides, and sizes that lack this part of the entropy of equal sizes count like one
# standard error,
TIE_ERRORS, NEAREST_TO_DECIDE, UNEVEN = 0.75, 5, 0.0125
# unless the best lacks more than this, and none of the others is even. Then sizes differ, and of those within so many
# standard errors the one that separates the fewest neighbours is taken.
CLEARLY_UNEVEN, UNEVEN_TIE_ERRORS = 0.035, 1.25
# K-means as a candidate starts on all rows, if they hold at most so many numbers, and else on a sample of at least so
# many rows. On 2,000 of 3,186 rows clusters were worse, and more rounds followed on all rows;
FLOOR_NUMBERS, FLOOR_ROWS = 600_000, 2000
# least and most number of its starts, and of rounds on all rows from the best one. K-means of few rows often ends in
# bad clusters but takes little time, so it starts more often there: to compare all rows with all centres so many times
# takes FLOOR_WORK multiplications.
LEAST_FLOOR_REPEATS, MOST_FLOOR_REPEATS, FLOOR_WORK = 10, 50, 50_000_000
# Rows of a file, and sparse rows, are judged on a sample of this many rows, if it fits into this many bytes.
ROWS_TO_JUDGE, BYTES_TO_JUDGE = 10_000, 256 << 20
# With fewer rows than this for each cluster, a graph says little: heads are alike, and the loss decides.
LEAST_ROWS_PER_CLUSTER = 10
# Neighbours by distance rather than by direction where there are fewer directions than this: in a plane, clusters that
# lie behind each other have the same direction. Digits (29 directions) gain by it, too.
LEAST_DIRECTIONS_FOR_COSINE = 32


def floor_rows(n_rows: int, n_features: int, n_clusters: int) -> int:
    """Return on how many rows K-means starts as a candidate.

    Examples
    --------
    >>> floor_rows(3000, 180, 3), floor_rows(30_000, 180, 3), floor_rows(30_000, 180, 50)
    (3000, 2000, 2500)
    """
    if n_rows * n_features <= FLOOR_NUMBERS:
        return n_rows
    return max(FLOOR_ROWS, sample_for_kmeans(n_features, n_clusters))


def floor_repeats(n_rows: int, n_features: int, n_clusters: int) -> int:
    """Return how often K-means starts on so many rows; also how many rounds it goes on so many, at most.

    Examples
    --------
    >>> floor_repeats(500, 7, 10), floor_repeats(2000, 64, 10), floor_repeats(2000, 256, 10)
    (50, 39, 10)
    """
    affordable = FLOOR_WORK // (n_rows * n_features * n_clusters)
    return max(LEAST_FLOOR_REPEATS, min(affordable, MOST_FLOOR_REPEATS))


# --- Components -------------------------------------------------------------------------------------------------------

# More components made no better clusters on 2048 ResNet features.
COMPONENTS = 256
# K clusters span K - 1 directions; twice as many leave room for those that vary more than the clusters do.
COMPONENTS_PER_CLUSTER = 2
# Projecting narrower rows takes more time than it saves, and its memory begins to count.
LEAST_REDUCTION = 4
# Rows on which components are found; on more rows, neighbours and clusters came out the same.
ROWS_FOR_COMPONENTS = 2000
# They are found among this many more random directions, in so many rounds of products.
EXTRA_AXES, ROUNDS_FOR_AXES = 10, 2
# Rows of a sample that are copied at once.
ROWS_COPIED_AT_ONCE = 128


def components_for(n_features: int, n_clusters: int) -> int:
    """Return ``n_components="auto"``; 0 if the rows are narrow enough as they are.

    Examples
    --------
    >>> components_for(2048, n_clusters=10), components_for(784, n_clusters=10)
    (256, 0)
    """
    count = max(COMPONENTS, COMPONENTS_PER_CLUSTER * n_clusters)
    return count if n_features >= LEAST_REDUCTION * count else 0


# --- Crowded clusters and starts --------------------------------------------------------------------------------------

# Rows on which variances along principal directions are measured: eigenvalues of 1000 rows take 0.2 s.
ROWS_FOR_SPECTRUM = 1000
# Directions beyond those that hold this part of the variance are noise.
PART_THAT_COUNTS = 0.95
# One direction separates two clusters. With fewer directions than this for each further cluster, most clusters lie
# between others, and random heads, which cut the space into slices, do not find them: measured on blobs in 2 to 256
# dimensions.
DIRECTIONS_PER_CLUSTER = 4
# Random heads beside labels only have to tell clusters apart that no label names.
SIZE_BESIDE_LABELS = 0.01
# K-means finds the centres of a start on this many rows for each cluster,
SAMPLE_PER_CLUSTER = 50
# but not on more than this many bytes hold,
SAMPLE_BYTES = 64 << 20
# unless these would be too few to choose from.
LEAST_PER_CLUSTER = 4
# Its first centres are drawn (k-means++) from this many rows, or this many for each cluster: with hundreds of clusters,
# drawing from all would take most of the time.
ROWS_FOR_FIRST_PLACES, FIRST_PLACES_PER_CLUSTER = 2000, 10
# Its rounds end when centres move by less than this part of the variance of a column, and after so many.
LEAST_MOVE, MOST_ROUNDS = 1e-4, 300
# Where rows repeat, clusters have no width; a head this steep is one-hot all the same.
STEEPEST = 100.0


def directions_in(variances: NDArray[np.float64]) -> int:
    """Return the smallest number of directions that hold nearly all of the variance, given the largest first."""
    parts = np.cumsum(variances)
    return 1 + int(np.searchsorted(parts, PART_THAT_COUNTS * parts[-1]))


def is_crowded(n_directions: int, n_clusters: int) -> bool:
    """Tell whether clusters must share directions. Then heads start from K-means, with less decay.

    Examples
    --------
    >>> is_crowded(2, n_clusters=10), is_crowded(60, n_clusters=10)
    (True, False)
    """
    return n_directions < DIRECTIONS_PER_CLUSTER * (n_clusters - 2)


def sample_for_kmeans(n_features: int, n_clusters: int) -> int:
    """Return the number of rows on which K-means finds the centres of a start."""
    affordable = SAMPLE_BYTES // (n_features * np.dtype(np.float64).itemsize)
    wanted = min(SAMPLE_PER_CLUSTER * n_clusters, affordable)
    return max(ROWS_FOR_SPECTRUM, wanted, LEAST_PER_CLUSTER * n_clusters)


def steepness_for(inertia: float, n_directions: int) -> float:
    """Return how steep a head around K-means' centres is, given the mean squared distance to them.

    For round clusters of variance v in every direction, 1/v is right. Softer heads can still be moved by training,
    and the more directions there are, the farther apart the centres and the surer the heads: hence the root.
    """
    width = inertia / n_directions
    return min(1 / (float(np.sqrt(n_directions)) * width), STEEPEST) if width > 0 else STEEPEST


# --- Weight decay and steps -------------------------------------------------------------------------------------------

# Decay per standard deviation along the leading directions: chosen on eight files from 4 to 2048 dimensions.
DECAY_PER_DEVIATION = 0.045
# K clusters are told apart along K - 1 directions; beyond some, the mean hardly changes.
MOST_DIRECTIONS = 20
# Each cluster is taught by its share of the rows, while the decay does not depend on it. The multiple above was chosen
# with ten clusters; with more, the decay must fall as the share does.
CLUSTERS_OF_THE_CHOICE = 10
# Crowded clusters: decay times the squared weights of a head around K-means' centres. More melted good starts.
CROWDED_PENALTY = 0.3
# Labels keep heads from saturating on a wrong answer, so the decay only has to regularise.
DECAY_BESIDE_LABELS = 0.25
# Steps beside labels: K / v is half of what is stable at the start, with v the variance along the leading direction;
# beyond this many classes it would be too much later, when two classes share all points.
MOST_CLASSES_FOR_STEPS = 8


def decay_for(variances: NDArray[np.float64], n_clusters: int, *, squared_weights: float | None = None) -> float:
    """Return ``weight_decay="auto"``.

    The larger the features along the directions that tell clusters apart, the smaller the weights that do it, and the
    larger the decay that keeps their softmax from saturating too early. The number of features says little about
    that: a whitened matrix has many columns and no leading direction.

    Parameters
    ----------
    variances : ndarray
        Along the principal directions of standardised rows, largest first.
    n_clusters : int
        Number of clusters.
    squared_weights : float, optional
        Where clusters are crowded: the squared weights of a head around K-means' centres. Crowded clusters are close
        to each other, and only large weights tell them apart.
    """
    leading = variances[: min(max(n_clusters - 1, 1), MOST_DIRECTIONS)]
    share = min(1.0, CLUSTERS_OF_THE_CHOICE / n_clusters)
    decay = float(DECAY_PER_DEVIATION * np.sqrt(leading.mean()) * share)
    return min(decay, CROWDED_PENALTY / squared_weights) if squared_weights else decay


# --- Neighbours -------------------------------------------------------------------------------------------------------

# Five to twenty neighbours did equally well.
NEIGHBORS = 10
# In many directions a few rows can be divided in any way, and neighbours keep heads from it; where clusters are crowded
# into few directions, neighbours of a few rows only blur the borders.
LEAST_ROWS, LEAST_CROWDED_ROWS = 100, 1000
# Above, the graph's memory begins to count.
MOST_ROWS = 500_000
# Up to this many rows, all pairs are compared; with more, each row is compared with at least this many in nearby cells,
# which finds 0.92 of the nearest fifteen in 50,000 rows.
MOST_ROWS_FOR_ALL_PAIRS = 10_000
ROWS_COMPARED = 1500
# Above this number, where that would find less than 0.85 of them, rows are sorted into cells this many times: the same
# number of comparisons finds more in cells that differ.
MOST_ROWS_FOR_ONE_SORTING = 50_000
SORTINGS = 6
# Together, their rows are compared with one more for so many rows, from the first to the second number of rows.
ROWS_FOR_ONE_COMPARED, LEAST_COMPARED, MOST_COMPARED = 300, 1200, 4000
# Then follow so many rounds of comparisons with the neighbours of neighbours; a third found hardly more. Of each row's
# neighbours so many are followed, as the time grows with their square.
ROUNDS_OF_LINKS = 2
LEAST_LINKS, MOST_LINKS = 15, 30
# Rows whose neighbours of neighbours one call compares: few enough to share out, many enough to hide the call.
ROWS_AT_ONCE = 1024
# Rows that are compared with all to say what part of the nearest was found: to about 0.02.
ROWS_FOR_RECALL = 200
# Columns of all rows that are copied at once while rows are sorted by cells.
COLUMNS_SORTED_AT_ONCE = 32
# Smaller cells follow the data more closely, but products of smaller matrices are slower.
ROWS_IN_CELL = 128
# Many equal rows share a cell, which is cut into pieces of this size.
LARGEST_CELL = 1024
# Cells are found by some rounds of K-means on this many rows for each; more of either found no more neighbours.
SAMPLE_IN_CELL = 16
ROUNDS_FOR_CELLS = 3
# Groups of cells are few, so that a larger sample takes no time.
SAMPLE_IN_GROUP = 64


def rows_compared(n_rows: int) -> int:
    """Return with how many rows each is compared in a search for neighbours.

    Examples
    --------
    >>> rows_compared(5000), rows_compared(50_000), rows_compared(1_000_000)
    (5000, 1500, 3333)
    """
    if n_rows <= MOST_ROWS_FOR_ONE_SORTING:
        return n_rows if n_rows <= MOST_ROWS_FOR_ALL_PAIRS else ROWS_COMPARED
    return min(max(n_rows // ROWS_FOR_ONE_COMPARED, LEAST_COMPARED), MOST_COMPARED)


def neighbors_for(n_rows: int, *, crowded: bool) -> int:
    """Return ``n_neighbors="auto"`` for dense rows; 0 for none.

    Examples
    --------
    >>> neighbors_for(2000, crowded=False), neighbors_for(50, crowded=False), neighbors_for(500, crowded=True)
    (10, 0, 0)
    """
    least = LEAST_CROWDED_ROWS if crowded else LEAST_ROWS
    return NEIGHBORS if least <= n_rows <= MOST_ROWS else 0


# --- The number of clusters -------------------------------------------------------------------------------------------

# Partitions to join start with this many times more parts than clusters are thought of,
FINEST_PARTS = 1.5
# and resolutions rise by this factor from one to the next: closer steps changed nothing.
FINER_RESOLUTION = 1.6
# Borders of a cloud are measured for this many numbers of parts, and stored for this many. With half as many measured,
# scores depended more on the largest number tried.
BORDERS_MEASURED, POINTS_OF_CLOUD = 32, 200
# Numbers of clusters that "auto" tries, at most, with at least this many rows for each cluster.
MOST_CLUSTERS_TRIED, ROWS_PER_CLUSTER_TRIED = 100, 5
# More are not compared: the time grows with their cube.
MOST_CLUSTERS_SEARCHED = 1000
# Rows on which numbers of clusters are compared, or this many for each cluster; more rows show more of the structure
# within clusters, fewer hide small clusters.
ROWS_FOR_SEARCH, SEARCH_ROWS_PER_CLUSTER = 4000, 20
# Fewer rows have too few pairs of neighbours to tell clusters from chance.
LEAST_ROWS_FOR_SEARCH = 20
# Above, distances in a sample tell nothing of the dimension, and clouds of more dimensions have the same borders.
MOST_DIMENSIONS = 80
# Clouds in which a dimension is measured, until one has that of the rows: the third changes it by one at most.
CLOUDS_FOR_DIMENSION = 3
# Searches, with other clouds and partitions, whose median decides: a single one is off by one or two clusters, and
# with three the choice still depended on the seed on half of the real sets.
SEARCHES = 9
# Clusters e times as many must save COST_OF_CLUSTERS more, as within most classes there are kinds that save a little,
# and COST_IN_ONE_DIMENSION divided by the dimension, as in few dimensions borders are short everywhere. From
# FEW_DIMENSIONS on, only MOST_CLUSTERS_THAT_COST do: each of many clusters holds so few rows that a further cost would
# join what is clearly apart.
COST_OF_CLUSTERS, COST_IN_ONE_DIMENSION, FEW_DIMENSIONS, MOST_CLUSTERS_THAT_COST = 0.06, 0.2, 6, 20
# Clouds without clusters reached scores up to half of this,
LEAST_SAVED = 0.01
# and no borders this short beside those of clouds;
HARDLY_A_BORDER = 0.05
# borders of one cloud that reached such a score were 0.97 to 1.2 times as long as those of its twin; those of the real
# sets it was chosen on at most 0.71 times.
MOST_OF_ONE = 0.8
# Numbers of clusters whose score is within this part of the best are called about as good; at most this many are
# named.
NEARLY_AS_GOOD = 0.02
RUNNERS_UP_NAMED = 3
# Another level is named where the score stops rising by this part of the best, and has reached this part of it.
LEAST_BEND = 0.1
LEAST_PART_OF_BEST = 0.4
MOST_LEVELS = 3


def candidates_for(n_rows: int) -> range:
    """Return the numbers of clusters that ``n_clusters="auto"`` tries.

    Examples
    --------
    >>> candidates_for(150), candidates_for(10_000)
    (range(2, 31), range(2, 101))
    """
    return range(2, min(MOST_CLUSTERS_TRIED, n_rows // ROWS_PER_CLUSTER_TRIED) + 1)


def worth_of(counts: NDArray[np.integer[Any]], dimension: float) -> NDArray[np.float64]:
    """Return the part of what so many clusters save that is left after their cost, in so many dimensions.

    Examples
    --------
    >>> worth_of(np.array([1, 10, 20, 50]), 20).round(2), worth_of(np.array([1, 10, 20, 50]), 4).round(2)
    (array([1.  , 0.84, 0.79, 0.79]), array([1.  , 0.75, 0.67, 0.57]))
    """
    cost = COST_OF_CLUSTERS + COST_IN_ONE_DIMENSION / max(dimension, 1.0)
    costly = counts if dimension < FEW_DIMENSIONS else np.minimum(counts, MOST_CLUSTERS_THAT_COST)
    return np.asarray(np.maximum(1 - cost * np.log(costly), 0.0))


def rows_for_search(most_clusters: int) -> int:
    """Return how many rows are searched at most for a number of clusters."""
    return max(ROWS_FOR_SEARCH, SEARCH_ROWS_PER_CLUSTER * most_clusters)


# --- Columns and rows that stand out ----------------------------------------------------------------------------------

# Columns are scaled one by one where the largest deviation is more than this many times the median: 388 for wine and
# 7829 for breast cancer, whose columns are in different units; at most 9 for pixels, digits and embeddings.
UNLIKE_COLUMNS = 20.0
# Rows at more than this many times the median distance from the middle take no part in the fit; 15 is the most on clean
# data,
FAR = 30.0
# unless they are more than this part of the rows.
MOST_FAR = 0.01
# The median of so many rows is their middle.
ROWS_FOR_MIDDLE = 300
# Rows whose distances to their neighbours a thread measures at once.
ROWS_FOR_OUTLIERS = 1024


# Principal directions are evened out, each divided by the root of its deviation, if on this many rows the graph falls
# into parts whose modularity is lower by at most so many standard errors. Fewer rows than the second number say little.
ROWS_TO_COMPARE_DIRECTIONS, LEAST_ROWS_TO_EVEN_OUT, AS_CLEAR_ERRORS = 3000, 300, 0.5
# It is not worth comparing where the longest would be shortened by less than this beside the shortest that is not
# rounding. More columns than the second number are not evened out, as the time grows with their cube.
LEAST_EVENING, MOST_COLUMNS_TO_EVEN_OUT = 1.5, 1024


def may_even_out(variances: NDArray[np.float64]) -> bool:
    """Tell whether directions are few, also once they are evened out, and of different length.

    Rows of more directions are compared by their angle, and evening would only bring out noise.

    Parameters
    ----------
    variances : ndarray
        Variances along the principal directions, the largest first.

    Examples
    --------
    >>> may_even_out(np.array([100.0, 9.0, 6.0])), may_even_out(np.array([3.0, 2.0, 1.0])), may_even_out(np.ones(50))
    (True, False, False)
    """
    kept = variances[variances > LEAST_DEVIATION**2 * variances[0]]
    is_worth_it = len(kept) > 0 and bool(kept[0] >= LEAST_EVENING**4 * kept[-1])
    return is_worth_it and directions_in(np.sqrt(kept)) < LEAST_DIRECTIONS_FOR_COSINE


def needs_column_scaling(deviations: NDArray[np.float64]) -> bool:
    """Tell whether columns seem to be in different units, so that ``scale="auto"`` scales each.

    Examples
    --------
    >>> import numpy as np
    >>> needs_column_scaling(np.array([1.0, 2.0, 300.0])), needs_column_scaling(np.array([1.0, 2.0, 3.0]))
    (True, False)
    """
    varying = deviations[deviations > 0]
    return len(varying) > 1 and bool(varying.max() > UNLIKE_COLUMNS * np.median(varying))


# --- Doubt ------------------------------------------------------------------------------------------------------------

# A cluster with less than this part of the rows expected of it is tiny.
TINY_PART = 0.15
# Where nothing is expected, one with fewer rows than this is.
TINY_ROWS = 5
# Below this mean adjusted Rand index between candidates, the clusters are one of many possible answers.
LOW_AGREEMENT = 0.45
# Among at least this many candidates, one should have found clusters similar to the chosen ones, by this index.
FEW_AGREE, SIMILAR_CLUSTERS = 5, 0.7
# A mean confidence this part of the way from a guess (1/K) to certainty: the prediction ignores the features.
LOW_CONFIDENCE = 0.1

# --- Memory -----------------------------------------------------------------------------------------------------------

# Rows are read, projected and predicted in blocks of this size in bytes: they stay in the second-level cache.
BLOCK_BYTES = 4 << 20
# Blocks of a file that a thread reads ahead of the arithmetic: one is under way while another waits.
BLOCKS_READ_AHEAD = 2
# Files larger than memory: with less, a sample that stands for all rows would not fit.
LEAST_ROWS_IN_MEMORY = 500
# Of more rows than this that are not in memory, a random sample is trained on: more make no better clusters, and
# finding their neighbours takes longer than reading them. Fewer than the second number would make worse clusters.
MOST_ROWS_KEPT, LEAST_ROWS_KEPT = 100_000, 10_000
# The search for neighbours holds this many copies of the rows, each of as many columns as there are components.
COPIES_FOR_NEIGHBORS = 4
# A worker of Dask has to hold a chunk, a copy in the type of the computations, and what is made of them.
CHUNKS_IN_WORKER = 3
# What a worker reads of a shard at once, in bytes: small enough for several threads of a small worker, large enough to
# hide the cost of opening a file.
SHARD_CHUNK_BYTES = 64 << 20
# The silhouette compares all pairs of this many rows.
SILHOUETTE_ROWS = 1000


def rows_to_keep(n_features: int, memory: int) -> int:
    """Return how many rows that are not in memory are trained on, given the bytes that they may take.

    Examples
    --------
    >>> rows_to_keep(2048, 10**9), rows_to_keep(2048, 10**8), rows_to_keep(2048, 10**6)
    (100000, 24414, 10000)
    """
    copy = min(n_features, COMPONENTS) * np.dtype(np.float32).itemsize
    return min(MOST_ROWS_KEPT, max(LEAST_ROWS_KEPT, memory // (COPIES_FOR_NEIGHBORS * copy)))
