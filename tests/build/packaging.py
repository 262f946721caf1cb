#!/usr/bin/env python3
"""Runs the commands of the recipes for vcpkg and conda from the source archive without those tools. Run it by hand.

    packaging.py WORK --torch <a folder that has share/cmake/Torch in it> --deps <a folder for SCONCE_DEPS_DIR>

Creates the archive and the recipes of the last commit in WORK/dist (tests/release.py --dist). Runs conda's build.sh with
the variables that conda-build sets, and vcpkg's portfile.cmake with stand-ins for vcpkg's functions. Builds
apps/template against each installation, and runs it.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Stand-ins for vcpkg's functions, as far as the portfile uses them. The package stays in lib/cmake, where it was
# installed.
VCPKG = """
cmake_minimum_required(VERSION 3.25)
function(vcpkg_download_distfile out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILENAME;SHA512" "URLS")
  file(SHA512 "${DIST}/${arg_FILENAME}" hash)
  if(NOT hash STREQUAL arg_SHA512)
    message(FATAL_ERROR "expected the hash ${arg_SHA512}, got ${hash}")
  endif()
  set(${out} "${DIST}/${arg_FILENAME}" PARENT_SCOPE)
endfunction()
function(vcpkg_extract_source_archive out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${WORK}/source")
  file(GLOB folder "${WORK}/source/*")
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" -G Ninja ${arg_OPTIONS}
    -DCMAKE_BUILD_TYPE=Release "-DSCONCE_DEPS_DIR=${DEPS}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_install)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" --parallel "${JOBS}" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  if(NOT EXISTS "${PREFIX}/${arg_CONFIG_PATH}/${arg_PACKAGE_NAME}-config.cmake")
    message(FATAL_ERROR "expected ${arg_PACKAGE_NAME}-config.cmake in ${arg_CONFIG_PATH}")
  endif()
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY ${arg_FILE_LIST} DESTINATION "${PREFIX}/share/sconce-cpp")
endfunction()
include("${DIST}/packaging/vcpkg/portfile.cmake")
"""


def run(*command, **options):
    print("==", shlex.join(map(str, command))[:200], flush=True)
    subprocess.run(command, check=True, **options)


def build_for_conda(work, dist, variables):
    source = work / "source"
    source.mkdir(parents=True)
    run("tar", "xf", next(dist.glob("*.tar.gz")), "--strip-components=1", "-C", source)
    arguments = [f"-DTorch_DIR={variables['TORCH']}", f"-DSCONCE_DEPS_DIR={variables['DEPS']}"]
    run("bash", dist / "packaging/conda/build.sh", cwd=source, env=dict(
        os.environ, CMAKE_ARGS=" ".join(arguments), CPU_COUNT=variables["JOBS"], PREFIX=str(work / "prefix")))


def build_for_vcpkg(work, dist, variables):
    work.mkdir(parents=True)
    (work / "vcpkg.cmake").write_text(VCPKG, encoding="utf-8")
    values = dict(variables, WORK=work, DIST=dist, PREFIX=work / "prefix")
    run("cmake", *(f"-D{name}={value}" for name, value in values.items()), "-P", work / "vcpkg.cmake",
        env=dict(os.environ, Torch_DIR=variables["TORCH"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--torch", type=pathlib.Path, required=True)
    parser.add_argument("--deps", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    arguments = parser.parse_args()
    torch = next(arguments.torch.resolve().glob("**/share/cmake/Torch"), None)
    if torch is None:
        parser.error(f"--torch: expected a folder with share/cmake/Torch in it, got {arguments.torch}")
    variables = {"TORCH": str(torch), "DEPS": str(arguments.deps.resolve()), "JOBS": arguments.jobs}
    dist = arguments.work.resolve() / "dist"
    run(sys.executable, ROOT / "tests/release.py", "--dist", dist)
    for name, build in {"conda": build_for_conda, "vcpkg": build_for_vcpkg}.items():
        work = arguments.work.resolve() / name
        shutil.rmtree(work, ignore_errors=True)
        build(work, dist, variables)
        run("cmake", "-S", ROOT / "apps/template", "-B", work / "template", "-G", "Ninja", f"-DTorch_DIR={torch}",
            f"-DCMAKE_PREFIX_PATH={work / 'prefix'}")
        run("cmake", "--build", work / "template")
        run(work / "template/train")


if __name__ == "__main__":
    main()
