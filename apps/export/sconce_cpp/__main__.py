"""`python -m sconce_cpp` runs the `sconce-export` command."""
import sys

from sconce_cpp.command import main

sys.exit(main())
