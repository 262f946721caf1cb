"""`python -m sconce_cpp` runs the command `sconce-export`."""
import sys

from sconce_cpp.command import main

sys.exit(main())
