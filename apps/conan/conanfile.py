"""Builds apps/template with the package and runs the program, for `conan create`."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake


class Template(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        self.folders.root = "../.."
        self.folders.source = "apps/template"
        self.folders.build = "build/conan"
        self.folders.generators = "build/conan/generators"

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(os.path.join(self.build_folder, "train"), env="conanrun")
