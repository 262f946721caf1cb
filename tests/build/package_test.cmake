# Builds the C++ programs of docs/ and the program of apps/template as a separate project, with each CMake block of docs/.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DWAY=<find_package|add_subdirectory|FetchContent>
#         -DPYTHON=<a Python that has torch> [-DBUILD=<the build folder to install from>]
#         [-DOPTIONS=<arguments of cmake, separated by spaces>] -P package_test.cmake
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
separate_arguments(OPTIONS UNIX_COMMAND "${OPTIONS}")
set(project "${WORK}/mein projekt ä") # spaces and a letter that is not ASCII
set(build "${CMAKE_COMMAND}" --build "${project}/build")

# A row of the table of the pages' programs: a name, and a text that only its block contains. Without PRINTS the program is
# only compiled. With
#   PRINTS <regex>    it runs in WORK, and its output matches
#   WRITES <file>...  it writes files there, each given as a pattern for file(GLOB)
#   AGAIN <regex>     it runs a second time, with this output
#   RANKS             it runs a second time, as two processes
#   NEEDS <package>   it runs only if the installed sconce was built with that package
function(program name text)
  set(programs ${programs} ${name} PARENT_SCOPE)
  set(text_of_${name} "${text}" PARENT_SCOPE)
  set(checks_of_${name} "${ARGN}" PARENT_SCOPE)
endfunction()

program(attention "TransformerEncoder")
program(layers "// program, io" PRINTS "epoch 2/2: loss [0-9.]+, train acc [0-9.]+\n.*the step is replayed\n.*Linear "
        WRITES network.safetensors)
program(limits "lazy->weight.sizes()"
        PRINTS "^.0.\nsconce::Trainer: expected accumulate_grad_batches to be 1 with graph, got 2\n$")
program(mixed_precision "scaler.unscale_" PRINTS "^")
program(weights "save_safetensors" PRINTS "2.weight .2, 4.\n2.bias .2.\n" WRITES net.safetensors)
program(own_data "struct Points" PRINTS "epoch 5/5: loss [0-9.]+, train acc [0-9.]+\n")
program(split_data "random_split" PRINTS "5 batches, then 1, and 22 items\n")
program(tables "read_csv" PRINTS "rooms roof_slate roof_tile .*epoch 10/10: loss [0-9.]+\n")
program(predictions "trainer.predict" PRINTS "3 tensors\n[0-9]+ of class 1\n[0-9]+ of class 1\n[0-9]+ of class 1\n")
program(frozen "FrozenNorm" PRINTS "mean of the frozen layer: 0\n")
program(torch_data "from_torch" PRINTS "epoch 5/5: loss [0-9.]+\n.*epoch 5/5: loss [0-9.]+\n")
program(metrics "public sconce::metrics::Metric" PRINTS
        "accuracy 0[.][0-9]+, F1 0[.][0-9]+, AUROC 0[.][0-9]+, recall 0[.][0-9]+, bias -0[.][0-9]+\n")
program(own_step "struct Autoencoder" PRINTS "epoch 20/20: loss [0-9.]+\n")
program(own_callback "class GradientNorm"
        PRINTS "epoch 3/3: loss [0-9.]+, train acc [0-9.]+, gradient norm [0-9.]+\n")
program(own_loop "TerminalBar" PRINTS "epoch 3: loss [0-9.]+\n" WRITES runs/third/scalars.csv)
program(stopped_loop "std::signal" PRINTS "^finished epochs: 3\n$" AGAIN "^finished epochs: 3\n$")
program(standardized "struct Standardized" PRINTS "epoch 5/5: loss [0-9.]+, train mae [0-9.]+, test mae [0-9.]+\n")
program(serving "std::thread first" PRINTS "^equal answers: true\n$")
program(latency "InferenceMode inference" PRINTS "^(forward|Program|CapturedStep)[^\n]*: p50 [0-9.]+ us, p99 [0-9.]+ us\n"
        WRITES latency.safetensors)
program(threads "std::jthread" PRINTS "^equal answers: true\n$")
program(shipped "sconce::data::Dataset history" PRINTS "^ 0:00 4[.][0-9]+\n.*23:00 [0-9.]+\n$" WRITES forecast.safetensors
        AGAIN "^ 0:00 4[.][0-9]+\n")
program(seeing "sconce::ScalarLogger" PRINTS "epoch 5/5: loss [0-9.]+, train acc [0-9.]+\n.*peak memory: [0-9]+ MiB"
        WRITES training.svg runs/first/scalars.csv trace.json)
program(tabs "add_histogram" PRINTS "^" WRITES runs/second/events.* runs/second/*/events.*) # and of hyperparameters
program(checkpoints "Checkpoint" PRINTS "epoch 3/3: loss [0-9.]+"
        AGAIN "^all 3 epochs are already trained: loss [0-9.]+, train acc [0-9.]+\n$")
program(pictures "ImageFolder" NEEDS PNG
        PRINTS "^.4, 3, 32, 32., the first is a (cat|dog)\n.4, 3, 32, 32., the first is a (cat|dog)\n$")
program(own_checkpoints "checkpoint.save(parts" PRINTS "3: loss [0-9.e-]+\n$" AGAIN "^$")
program(test_of_ranks "x.slice(0, 1000 + rank" PRINTS "epoch 3/3: loss [0-9.]+, train acc [0-9.]+, test acc [0-9.]+\n"
        RANKS)
program(several_processes "ProcessGroup" PRINTS "epoch 3/3: loss [0-9.]+, train acc [0-9.]+\n" RANKS)

# Sets <out> to the first code block on a page of docs/ that is in that language and contains <text>.
function(page_block out language text)
  file(GLOB pages "${SOURCE}/docs/*.md")
  # Lists the pages whose blocks are not programs or are tested elsewhere.
  list(FILTER pages EXCLUDE REGEX "/(compile_errors|from_libtorch|inside_another_program|python_to_cpp|recipes).md$")
  foreach(page IN LISTS pages)
    file(READ "${page}" rest)
    string(FIND "${rest}" "```${language}\n" start)
    while(NOT start EQUAL -1)
      string(SUBSTRING "${rest}" ${start} -1 rest)
      string(REGEX REPLACE "^```[a-z]+\n" "" rest "${rest}")
      string(FIND "${rest}" "```" length)
      string(SUBSTRING "${rest}" 0 ${length} block)
      string(FIND "${block}" "${text}" place)
      if(NOT place EQUAL -1)
        set(${out} "${block}" PARENT_SCOPE)
        return()
      endif()
      string(FIND "${rest}" "```${language}\n" start)
    endwhile()
  endforeach()
  message(FATAL_ERROR "no page has a ${language} block with '${text}'")
endfunction()

# Sets <out> to the first program on the pages that contains <text>, and stops unless it includes everything that it
# needs.
function(page_program out text)
  page_block(program cpp "${text}")
  foreach(header IN ITEMS sconce/sconce.hpp torch/torch.h)
    if(NOT program MATCHES "#include <${header}>\n")
      message(FATAL_ERROR "the pages' program with '${text}' does not include <${header}>")
    endif()
  endforeach()
  set(${out} "${program}" PARENT_SCOPE)
endfunction()

# Adds an executable with one source to the project.
function(add_executable_to_project name target source)
  file(WRITE "${project}/${name}.cpp" "${source}")
  file(APPEND "${project}/CMakeLists.txt"
       "add_executable(${name} ${name}.cpp)\ntarget_link_libraries(${name} PRIVATE ${target})\n")
endfunction()

# Stops if any of sconce's programs or tests was built, if the build printed a warning, or if training with the program
# of apps/template fails.
function(check_template)
  if(output MATCHES "warning:")
    message(FATAL_ERROR "building: expected no warning\n${output}")
  endif()
  file(GLOB_RECURSE others "${project}/build/*sconce-train" "${project}/build/*test-core")
  if(others)
    message(FATAL_ERROR "programs or tests of sconce were built: ${others}")
  endif()
  run("running" "${project}/build/mine")
  expect("epoch 10/10: loss [0-9.]+, train acc [0-9.]+\n")
endfunction()

# Configures the project. Stops if there is a warning, or if LibTorch does not come from Python.
function(configure_project)
  run("configuring" ${configure})
  if(output MATCHES "CMake Warning|CMake Error")
    message(FATAL_ERROR "configuring: expected no warning\n${output}")
  endif()
  expect("sconce: LibTorch [^\n]*Python's torch")
endfunction()

# Installs sconce into WORK/prefix. None of its files contains a path of the source or build folder, except for the
# LibTorch path that one file may contain.
function(install_sconce)
  run("installing" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/first")
  file(RENAME "${WORK}/first" "${WORK}/prefix") # a package may be moved
  file(GLOB_RECURSE exported "${WORK}/prefix/lib*/cmake/sconce-*.cmake")
  foreach(file IN LISTS exported)
    file(READ "${file}" text)
    if(file MATCHES "/sconce-config.cmake$")
      string(REGEX REPLACE "set.SCONCE_TORCH_OF_BUILD [^\n]*\n" "" text "${text}")
    endif()
    foreach(path IN ITEMS "${SOURCE}" "${BUILD}" "site-packages" "libtorch")
      string(FIND "${text}" "${path}" place)
      if(NOT place EQUAL -1)
        message(FATAL_ERROR "${file} holds '${path}'")
      endif()
    endforeach()
  endforeach()
endfunction()

# The licenses and the bill of materials are installed, and the bill lists a version of each library.
function(check_notices)
  foreach(file IN ITEMS LICENSE THIRD_PARTY.txt sconce.spdx.json)
    if(NOT EXISTS "${WORK}/prefix/share/doc/sconce/${file}")
      message(FATAL_ERROR "installing: expected share/doc/sconce/${file}")
    endif()
  endforeach()
  file(READ "${WORK}/prefix/share/doc/sconce/sconce.spdx.json" sbom)
  string(JSON count LENGTH "${sbom}" relationships)
  string(JSON packages LENGTH "${sbom}" packages)
  math(EXPR last "${packages} - 1")
  set(output "${packages} packages, ${count} relationships:")
  foreach(i RANGE ${last})
    string(JSON name GET "${sbom}" packages ${i} name)
    string(JSON version GET "${sbom}" packages ${i} versionInfo)
    string(APPEND output " ${name} ${version},")
  endforeach()
  expect("^${packages} packages, ${packages} .* nlohmann_json [0-9.]+,.* ZLIB [0-9.]+,.* LibTorch [0-9.]+,")
endfunction()

# Configures with a Python without torch. The package falls back to the LibTorch that it was built with.
function(configure_without_torch)
  file(WRITE "${WORK}/python" "#!/bin/sh\nexec '${PYTHON}' -I -S \"$@\"\n")
  file(CHMOD "${WORK}/python" PERMISSIONS OWNER_READ OWNER_EXECUTE OWNER_WRITE)
  run("configuring without torch" ${configure} -B "${WORK}/without-torch" "-DPython3_EXECUTABLE=${WORK}/python")
  expect("sconce: LibTorch [^\n]*the one that sconce was built with")
  if(output MATCHES "CMake Warning")
    message(FATAL_ERROR "configuring: expected no warning\n${output}")
  endif()
endfunction()

# Adds the pages' programs to the project, each as <name>::run(). Most of a program's build time goes into torch/torch.h
# and the libraries, so all programs are compiled and linked as one.
function(add_programs)
  set(calls "")
  set(source "#include <filesystem>\n#include <iostream>\n#include <sconce/sconce.hpp>\n#include <string>\n"
             "#include <torch/torch.h>\n")
  list(JOIN source "" source)
  foreach(name IN LISTS programs)
    page_program(code "${text_of_${name}}")
    string(REGEX REPLACE "#include <[^>]+>\n" "" code "${code}")
    string(REPLACE "int main() {" "void run() {" code "${code}")
    string(APPEND source "namespace ${name} {\n${code}}\n")
    string(APPEND calls "  if (argv[1] == std::string(\"${name}\")) return ${name}::run(), 0;\n")
  endforeach()
  add_executable_to_project(pages sconce::sconce "${source}int main(int, char** argv) {\n${calls}  return 1;\n}\n")
endfunction()

# Sets <out> to whether the installed sconce was built with the package.
function(is_built_with out package)
  file(GLOB config "${WORK}/prefix/lib*/cmake/sconce/sconce-config.cmake")
  file(STRINGS "${config}" lines REGEX "ITEMS[^)]* ${package}[ )]")
  string(COMPARE NOTEQUAL "${lines}" "" found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

function(check_program name)
  cmake_parse_arguments(check "RANKS" "PRINTS;AGAIN;NEEDS" "WRITES" ${checks_of_${name}})
  is_built_with(has_needs "${check_NEEDS}")
  if(NOT check_PRINTS OR check_NEEDS AND NOT has_needs)
    return()
  endif()
  set(in_work "${CMAKE_COMMAND}" -E chdir "${WORK}")
  run("running the pages' ${name}" ${in_work} "${project}/build/pages" ${name})
  expect("${check_PRINTS}")
  foreach(file IN LISTS check_WRITES)
    file(GLOB written "${WORK}/${file}")
    if(NOT written)
      message(FATAL_ERROR "running the pages' ${name}: expected ${file}")
    endif()
  endforeach()
  if(check_AGAIN)
    run("running the pages' ${name} again" ${in_work} "${project}/build/pages" ${name})
    expect("${check_AGAIN}")
  endif()
  if(check_RANKS)
    run("running the pages' ${name} as two processes" ${in_work} torchrun --standalone --nproc-per-node=2 --no-python
        "${project}/build/pages" ${name})
    expect("${check_PRINTS}")
  endif()
endfunction()

# Writes the project of the block with COMPONENTS for another component.
function(write_lists_of component)
  page_block(lists cmake "COMPONENTS core")
  string(REPLACE "COMPONENTS core" "COMPONENTS ${component}" lists "${lists}")
  string(REPLACE "sconce::core" "sconce::${component}" lists "${lists}")
  file(WRITE "${project}/CMakeLists.txt" "${lists}")
endfunction()

# Checks one component by itself, with one of its light headers and an expression that calls its library.
function(check_component component header expression)
  write_lists_of(${component})
  file(WRITE "${project}/main.cpp" "#include <sconce/${header}.hpp>\n\nint main() {\n  return ${expression};\n}\n")
  run("building with ${component} alone" ${build})
  run("running with ${component} alone" "${project}/build/mine")
endfunction()

# Checks a component that requires a package, which is hidden. The error must say what to do.
function(expect_missing component hidden error)
  is_built_with(has_package ${hidden})
  if(hidden MATCHES "PNG|JPEG" AND NOT has_package)
    return()
  endif()
  write_lists_of(${component})
  foreach(package IN ITEMS ZLIB PNG JPEG)
    string(COMPARE EQUAL "${package}" "${hidden}" is_hidden)
    list(APPEND hide "-DCMAKE_DISABLE_FIND_PACKAGE_${package}=${is_hidden}")
  endforeach()
  expect_failure("${error}" ${configure} ${hide})
endfunction()

# A project that links only the core compiles no other part. With FetchContent, the commands are only listed. With
# add_subdirectory, whose path contains the same letters, the commands of the core are run.
function(check_core_alone)
  page_program(program "scaler.unscale_")
  add_executable_to_project(core sconce::core "${program}")
  configure_project()
  set(list_only "")
  if(WAY STREQUAL "FetchContent")
    set(list_only -- -n)
  endif()
  run("building with the core alone" ${build} --target core ${list_only})
  string(REGEX MATCHALL "Building CXX object [^\n]*sconce_core[^\n]*" of_core "${output}")
  string(REGEX MATCHALL "Building CXX object [^\n]*sconce_[^\n]*" compiled "${output}")
  if(NOT compiled OR NOT compiled STREQUAL of_core OR output MATCHES "warning:")
    message(FATAL_ERROR "the core: expected its sources alone, and no warning\n${output}")
  endif()
  if(NOT list_only)
    run("running with the core alone" "${project}/build/core")
    run("listing the rest" ${build} -- -n)
    expect("Linking CXX executable mine")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${project}")
page_block(lists cmake "${WAY}")
file(WRITE "${project}/CMakeLists.txt" "${lists}")
file(COPY_FILE "${SOURCE}/apps/template/main.cpp" "${project}/main.cpp")
set(configure "${CMAKE_COMMAND}" -S "${project}" -B "${project}/build" -G Ninja ${OPTIONS})
if(WAY STREQUAL "find_package") # only this way uses all of the pages' programs, which is enough
  list(APPEND configure "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
  install_sconce()
  check_notices()
  configure_without_torch()
  add_programs()
  configure_project()
  run("building" ${build})
  check_template()
  foreach(name IN LISTS programs)
    check_program(${name})
  endforeach()
  check_component(core devices "sconce::num_gpus() < 0")
  check_component(capture captured_step "sconce::CapturedStepOptions().num_warmup_iters != 3")
  check_component(data data/seed "sconce::data::mix_seeds(1, 2, 3) == 0")
  check_component(io io/atomic_file "sconce::io::sync_folder(\".\")")
  check_component(program program/program "sconce::program::TensorSpec().name != std::string()")
  check_component(distributed distributed/process_group "!sconce::distributed::is_nccl_available() && false")
  check_component(vision vision/idx
                  "sconce::vision::read_idx(\"${SOURCE}/apps/train/digits/t10k-labels-idx1-ubyte\").dim() != 1")
  check_component(training training/fit_result "sconce::FitResult().examples_per_second() == 0")
  check_component(report report/environment "sconce::gpu_names(sconce::Environment()).empty()")
  expect_missing(cores none "cores")
  expect_missing(vision ZLIB "sconce::io[ \n]+and[ \n]+sconce::vision[ \n]+need[ \n]+zlib")
  expect_missing(vision PNG "apt[ \n]+install[ \n]+libpng-dev")
  expect_missing(vision JPEG "apt[ \n]+install[ \n]+libjpeg-dev")
elseif(WAY STREQUAL "add_subdirectory")
  file(CREATE_LINK "${SOURCE}" "${project}/sconce" SYMBOLIC)
  check_core_alone()
else()
  set(clone "${WORK}/die quelle ö")
  file(COPY "${SOURCE}/CMakeLists.txt" "${SOURCE}/cmake" "${SOURCE}/include" "${SOURCE}/src" DESTINATION "${clone}")
  file(COPY "${SOURCE}/apps/export/sconce_cpp" DESTINATION "${clone}/apps/export")
  list(APPEND configure "-DFETCHCONTENT_SOURCE_DIR_SCONCE=${clone}")
  check_core_alone()
endif()
file(REMOVE_RECURSE "${WORK}")
