#!/usr/bin/env python3
"""Creates bundles as docs/ship_a_program.md describes, including with its Dockerfile, and runs them in a root file
system with only glibc.

  bundle_test.py --build BUILD --work WORK [TEST...]

BUILD is a build of sconce with its examples. The bundled program is the example serving_recorded, whose object file is
linked again, because compiling a program takes longer than everything else here. A second program of a few lines has a
small bundle, which is archived. The roots need unshare, or a user namespace without root's rights.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGE = (SOURCE / "docs/ship_a_program.md").read_text()
LIBC = ["c", "m", "dl", "pthread", "rt", "util"]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def block(language, text=""):
    """Returns the first block on the page that has this language and contains the text."""
    return next(found for found in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S) if text in found)


def run(*command, **options):
    """Runs a command, which must succeed, and returns its output."""
    ran = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=300, **options)
    if ran.returncode != 0:
        raise AssertionError(f"{command}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def make_root(root):
    """Creates a root file system that contains glibc, a package database that lists it, and no other files."""
    linked = run("ldd", sys.executable)
    loader = pathlib.Path(re.search(r"(/\S*ld-linux\S*) \(", linked)[1])
    folder = pathlib.Path(re.search(r"libc\.so\.6 => (\S+)/libc\.so\.6", linked)[1])
    for file in [loader, *(found for name in LIBC for found in folder.glob(f"lib{name}.so.[0-9]"))]:
        (root / file.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, root / file.relative_to("/"))
    for empty in ["proc", "dev", "data", "var/lib/dpkg/info", "var/lib/dpkg/updates"]:
        (root / empty).mkdir(parents=True)
    architecture = run("dpkg", "--print-architecture").strip()
    version = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    (root / "var/lib/dpkg/status").write_text(
        f"Package: libc6\nStatus: install ok installed\nArchitecture: {architecture}\nVersion: {version}\n"
        "Maintainer: the test\nDescription: glibc\n")


def run_in(root, program, *arguments, environment=ONE_THREAD):
    """Runs a program in a root file system like a container, with /proc and /dev but no network, and returns its
    output."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
    return run("unshare", *user, "--mount", "--pid", "--fork", "--net", "sh", "-c", script, root, program, *arguments,
               env={"PATH": os.environ["PATH"], **environment})


def files(root):
    """Returns the files and folders of a root file system, except for dpkg's own files."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if "var/lib/dpkg" not in str(path))


class Bundle(unittest.TestCase):
    """The full bundle, created with the steps of the Dockerfile."""

    @classmethod
    def setUpClass(cls):
        cls.work = arguments.work / "full"
        cls.root = cls.work / "root"
        cls.bundle = cls.root / "opt/forecast"
        (cls.work / "forecast").mkdir(parents=True)
        objects = list(arguments.build.glob("apps/examples/CMakeFiles/serving_recorded.dir/**/*.o"))
        lists = block("cmake").replace("main.cpp", " ".join(f'"{file}"' for file in objects))
        lists += "set_target_properties(train PROPERTIES LINKER_LANGUAGE CXX)\n"
        (cls.work / "forecast/CMakeLists.txt").write_text(lists)
        make_root(cls.root)
        cls.steps = 0
        for line in block("dockerfile").replace("\\\n", "").splitlines():
            cls.follow(line)

    @classmethod
    def follow(cls, line):
        """Follows a line of the Dockerfile that concerns the program. /src and /bundle are in the work folder."""
        paths = re.sub(r"(?<= )/(src/|bundle)", lambda found: f"{cls.work}/{found[1].replace('src/', '')}", line)
        if line.startswith("RUN ") and "/src/build" in line:
            environment = dict(os.environ, sconce_DIR=str(arguments.build))
            run("sh", "-ec", re.sub(r"-D(Torch_DIR|CMAKE_PREFIX_PATH)=\S+", "", paths[4:]), env=environment)
            cls.steps += 1
        elif line.startswith("COPY --from=build"):
            source, target = paths.split()[2:]
            shutil.copytree(source, cls.root / target.strip("/"), symlinks=True)
        elif line.startswith("ENTRYPOINT"):
            cls.program = re.search(r'\["(.*)"\]', line)[1]

    def test_the_dockerfile_configures_builds_and_installs_the_program(self):
        self.assertEqual(self.steps, 2)
        self.assertEqual(self.program, "/opt/forecast/bin/train")

    def test_the_bundle_predicts_the_same_bytes_in_a_root_with_only_glibc(self):
        examples, data = arguments.build / "bin/examples", self.root / "data"
        environment = {**os.environ, **ONE_THREAD}
        run(examples / "exporting", data / "net", data / "inputs", env=environment)
        run(examples / "serving_recorded", data / "net", data / "inputs", data / "build", env=environment)
        printed = run_in(self.root, self.program, "/data/net", "/data/inputs", "/data/bundle")
        self.assertIn("rows", printed)
        self.assertGreater((data / "build").stat().st_size, 1000)
        self.assertEqual((data / "build").read_bytes(), (data / "bundle").read_bytes())

    def test_the_library_path_of_the_environment_does_not_replace_a_library_of_the_bundle(self):
        other = self.root / "data/other"
        other.mkdir()
        (other / "libc10.so").write_text("not a library")
        with self.assertRaisesRegex(AssertionError, "usage: serving_recorded"):
            run_in(self.root, self.program, environment={"LD_LIBRARY_PATH": "/data/other"})

    def test_the_bundle_contains_the_libraries_that_the_program_loads_and_no_others(self):
        environment = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": "/data/log", **ONE_THREAD}
        with self.assertRaisesRegex(AssertionError, "usage: serving_recorded"):
            run_in(self.root, self.program, environment=environment)
        (log,) = (self.root / "data").glob("log*")
        loaded = set(re.findall(r"calling init: \S+/lib/train/(\S+)", log.read_text()))
        libraries = self.bundle / "lib/train"
        names = {file.name for file in libraries.iterdir()}
        self.assertEqual(loaded, {name for name in names if not re.search(r"\.so\.\d+\.\d", name)})  # libz.so.1.2
        self.assertIn("libtorch_cpu.so", loaded)
        for unused in ["libtorch_cuda", "libpng", "libjpeg"]:
            self.assertFalse([name for name in loaded if name.startswith(unused)])

    def test_no_run_path_names_a_folder_of_this_machine(self):
        for file in [self.bundle / "bin/train", *(self.bundle / "lib/train").iterdir()]:
            paths = re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", run("readelf", "-d", file))
            for path in ":".join(paths).split(":"):
                self.assertRegex(path, r"^($|\$ORIGIN)", file)

    def test_each_package_of_a_library_has_its_license_in_the_bundle(self):
        folder = self.bundle / "share/doc/train/licenses"
        names = {re.sub(r"-[0-9.]+(\+\w+)?$", "", path.name) for path in folder.iterdir()}
        self.assertLessEqual({"sconce", "torch", "libstdc++6", "libgcc-s1"}, names)
        for package in folder.iterdir():
            self.assertTrue(any(file.stat().st_size > 100 for file in package.rglob("*") if file.is_file()), package)


class Archives(unittest.TestCase):
    """Tests the archives of a small bundle. The archives of the full bundle are tested by hand, because creating them
    takes a minute."""

    @classmethod
    def setUpClass(cls):
        cls.work = arguments.work / "small"
        cls.work.mkdir(parents=True)
        (cls.work / "main.cpp").write_text("#include <iostream>\nint main() { std::cout << \"small\\n\"; }\n")
        lists = re.sub(r"target_link_libraries\(.*\n", "", block("cmake")).replace(" CPU)", ")")
        (cls.work / "CMakeLists.txt").write_text(lists + block("cmake", "file(REMOVE"))
        for text in ["--strip", "cpack"]:
            run("sh", "-ec", block("sh", text).replace("<folder>", f"'{arguments.build}'"), cwd=cls.work)
        cls.root = cls.work / "root"
        make_root(cls.root)

    def archive(self, ending):
        (archive,) = (self.work / "build").glob(f"*{ending}")
        return archive

    def test_the_folder_runs_after_it_is_moved(self):
        shutil.move(self.work / "bundle", self.work / "moved folder")
        self.assertEqual(run(self.work / "moved folder/bin/train"), "small\n")

    def test_the_unpacked_archive_runs_in_a_root_with_only_glibc(self):
        shutil.unpack_archive(self.archive(".tar.gz"), self.root / "data")
        (program,) = (self.root / "data").glob("*/bin/train")
        self.assertEqual(run_in(self.root, f"/{program.relative_to(self.root)}"), "small\n")

    def test_the_debian_package_installs_runs_and_is_removed_without_a_trace(self):
        package = self.archive(".deb")
        before = files(self.root)
        dpkg = ["dpkg", f"--root={self.root}", f"--log={self.work}/dpkg.log", "--force-not-root", "--force-bad-path"]
        run(*dpkg, "--install", package)
        self.assertEqual(run_in(self.root, "/usr/bin/train"), "small\n")
        self.assertIn("usr/share/doc/train/licenses/libstdc++6/copyright", files(self.root))
        run(*dpkg, "--purge", "train")
        self.assertEqual(files(self.root), before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    ended = unittest.main(argv=[sys.argv[0], *arguments.tests], exit=False)
    if ended.result.wasSuccessful():
        shutil.rmtree(arguments.work)
    sys.exit(not ended.result.wasSuccessful())
