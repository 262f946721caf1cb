"""`python -m sconce_cpp` is the command `sconce-export`."""
import sys

from sconce_cpp.command import main

sys.exit(main())
