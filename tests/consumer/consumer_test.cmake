# A user of the library, from `cmake --install` to a running program. Run by ctest as `consumer`.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/prefix")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed with status ${status}")
  endif()
endfunction()

# LibTorch's prefix, from the folder of its CMake package.
string(REGEX REPLACE "/(share|lib|lib64|lib/[^/]+)/cmake/Torch$" "" torch "${TORCH_PACKAGE}")

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
run("${prefix}/bin/attn-cli" --version)
run("${CMAKE_COMMAND}" -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}/project" -B "${WORK}/build"
    "-DCMAKE_PREFIX_PATH=${prefix}\;${torch}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer")
