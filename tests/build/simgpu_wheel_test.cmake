# Builds the wheel of the sconce-simgpu in a build folder, installs it next to torch, and runs Python on simulated GPUs.
#   cmake -DSOURCE=<sconce> -DWORK=<folder> -DPYTHON=<a Python that has torch> -DBUILD=<build>
#         -P simgpu_wheel_test.cmake
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

set(pip "${PYTHON}" -m pip --disable-pip-version-check --no-input)
set(env "${WORK}/env/bin")
file(REMOVE_RECURSE "${WORK}")
make_wheel_or_skip("making the wheel" ${pip} wheel --quiet --no-deps --wheel-dir "${WORK}" "${BUILD}/simgpu-wheel")
file(GLOB wheels RELATIVE "${WORK}" "${WORK}/*.whl")
set(output "${wheels}")
expect("^sconce_simgpu-[0-9.]+(dev0)?[+]torch[0-9.]+-py3-none-manylinux_2_[0-9]+_x86_64[.]whl$")

# The environment sees the torch of PYTHON. pip compares its version with the version that the wheel requires.
run("making an environment" "${PYTHON}" -m venv --without-pip "${WORK}/env")
run("asking where packages are" "${PYTHON}" -c "print(__import__('sysconfig').get_path('purelib'), end='')")
file(GLOB site "${WORK}/env/lib/python*/site-packages")
file(WRITE "${site}/torch.pth" "import site; site.addsitedir(r'${output}')\n")
run("installing the wheel" ${pip} --python "${env}/python" install --quiet --no-index "${WORK}/${wheels}")
run("counting the GPUs" "${env}/sconce-simgpu" --gpus 3 --hide-real-gpus -- "${env}/python" -c
    "import torch
print(torch.cuda.device_count(), torch.ones(2, device='cuda:2').sum().item())")
expect("\n3 2.0\n$")
file(REMOVE_RECURSE "${WORK}")
