"""Two rankings made one: relative score fusion.

Source: Weaviate hybrid search, relativeScoreFusion: the best candidates of each ranking, their scores spread over 0 to
1, added with weights. Fusion by rank alone was measured to be much worse.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from registry.localindex.bm25 import Rows, Scores

Order = npt.NDArray[np.int64]

ALPHA = 0.7
"""Weight of the vectors. Chosen on the 377 tools and 50 queries of `bench.discovery`, whose figures it therefore
flatters: .6 and .7 are alike; .75, Weaviate's default, loses one of the first five and two first places, .5 five."""

CANDIDATES = 100
"""Of each ranking, unless more are asked for."""


def best(scores: Scores, rows: Rows, most: int, order: Order) -> Rows:
    """The `most` rows with the highest scores, in no order.

    Args:
        order: a number for every row, by which ties at the cut are decided. It comes from the entry, not the row: what
            is found shall not depend on the order of writes.
    """
    if len(rows) <= most:
        return rows
    chosen = scores[rows]
    least = np.partition(chosen, -most)[-most]
    above, tied = rows[chosen > least], rows[chosen == least]
    return np.concatenate((above, tied[np.argsort(order[tied])][: most - len(above)]))


def spread(scores: Scores, rows: Rows) -> Mapping[int, float]:
    """The scores of these rows, the lowest as 0 and the highest as 1; all as 1 when they are equal."""
    if not len(rows):
        return {}
    chosen = scores[rows]
    low, high = float(chosen.min()), float(chosen.max())
    spread_out = (chosen - low) / (high - low) if high > low else np.ones_like(chosen)
    return dict(zip(rows.tolist(), spread_out.tolist(), strict=True))


def fused(vectors: Mapping[int, float], words: Mapping[int, float], alpha: float) -> dict[int, float]:
    """The weighted sum, by row; a row that one ranking lacks has 0 there."""
    return {
        row: alpha * vectors.get(row, 0.0) + (1 - alpha) * words.get(row, 0.0) for row in vectors.keys() | words.keys()
    }
