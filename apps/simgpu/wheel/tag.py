"""Sets the wheel's tag for hatchling to any Python 3 on Linux with this machine's glibc version or a newer one."""
import platform

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        glibc = platform.libc_ver()[1].replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{glibc}_{platform.machine()}"
