"""Builds the library of this folder for Conan 2. It requires no package: zlib, and libpng and libjpeg-turbo where they
are, come from the system, and LibTorch from the folder that the option torch_dir or the environment variable Torch_DIR
names: `conan create . -o "sconce-cpp/*:torch_dir=<libtorch>/share/cmake/Torch"`."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Sconce(ConanFile):
    name = "sconce-cpp"
    description = "A thin C++20 layer over LibTorch that adds what PyTorch has only in Python"
    license = "MIT"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "torch_dir": [None, "ANY"]}
    default_options = {"shared": False, "torch_dir": None}
    exports_sources = "CMakeLists.txt", "LICENSE", "THIRD_PARTY.txt", "apps/export/sconce_cpp/*", "cmake/*", "include/*", "src/*"
    test_package_folder = "apps/conan"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/sconce/version.hpp"))
        suffix = re.search(r'SCONCE_VERSION_SUFFIX "(.*)"', header)[1]
        self.version = ".".join(re.findall(r"#define SCONCE_VERSION_[A-Z]+ (\d+)", header)) + suffix

    def layout(self):
        cmake_layout(self)

    def torch_of(self, options):
        """Returns the folder of the LibTorch that the options or the environment name, and its version; throws if none is."""
        folder = str(options.get_safe("torch_dir") or os.environ.get("Torch_DIR", ""))
        file = os.path.join(folder, "TorchConfigVersion.cmake")
        if not folder or not os.path.exists(file):
            where = f" in {folder}" if folder else ""
            raise ConanInvalidConfiguration(f"no LibTorch{where}: name the folder <libtorch>/share/cmake/Torch by "
                                            "-o 'sconce-cpp/*:torch_dir=...' or by the environment variable Torch_DIR")
        return folder, re.search(r'PACKAGE_VERSION "([^"]+)"', load(self, file))[1]

    def validate_build(self):
        self.torch_of(self.options)  # else CMake would install the pinned wheel

    def package_id(self):
        try:
            self.info.options.torch_dir = self.torch_of(self.info.options)[1]  # wherever it is
        except ConanInvalidConfiguration:
            pass  # a package that is not built here

    def generate(self):
        toolchain = CMakeToolchain(self)
        # Each layer compiles as one source, so a precompiled header would cost more than it saves.
        toolchain.cache_variables.update({
            "Torch_DIR": self.torch_of(self.options)[0], "SCONCE_BUILD_APPS": False, "SCONCE_BUILD_TESTS": False,
            "CMAKE_UNITY_BUILD": True, "CMAKE_DISABLE_PRECOMPILE_HEADERS": True})
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        for name in ("LICENSE", "THIRD_PARTY.txt"):
            copy(self, name, self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # sconce's own package finds LibTorch
        self.cpp_info.builddirs = ["lib/cmake/sconce"]
