"""Arrays that pass between the stages. For type checkers alone: records load without numpy."""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]  # (n, dim) or (dim,), rows of unit length
