"""``python -m arnpg`` is the command ``arnpg``."""

import sys

from arnpg.cli import main

sys.exit(main())
