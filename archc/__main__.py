"""`python -m archc`: the same as the `archc` command."""

import sys

from archc.cli import main

if __name__ == "__main__":
    sys.exit(main())
