"""``python -m edgerag`` is ``edgerag``."""

import sys

from edgerag.ui.cli import main

sys.exit(main())
