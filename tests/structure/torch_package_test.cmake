# Gives cmake/AttnTorch.cmake one made-up LibTorch after the other and expects its answer.
#   cmake -DWORK=<folder for the made-up ones> -P torch_package_test.cmake
cmake_minimum_required(VERSION 3.25)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tests_dir)
cmake_path(GET tests_dir PARENT_PATH repository)
file(REMOVE_RECURSE "${WORK}")

# A project that only looks for LibTorch, and only where it is told to: not in the system, not in the repository's .deps.
file(COPY "${repository}/cmake/AttnTorch.cmake" "${repository}/cmake/AttnCudaTargets.cmake" DESTINATION "${WORK}/project/cmake")
file(WRITE "${WORK}/project/CMakeLists.txt" [[
cmake_minimum_required(VERSION 3.25)
project(finds_torch LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_SOURCE_DIR}/cmake")
foreach(place CMAKE_SYSTEM_PATH SYSTEM_ENVIRONMENT_PATH PACKAGE_REGISTRY)
  set(CMAKE_FIND_USE_${place} OFF)
endforeach()
include(AttnTorch)
message(STATUS "accepted")
]])

# A LibTorch in WORK/<name>, as far as CMake looks at it. `config` is added to its package file.
function(make_torch name version config)
  set(root "${WORK}/${name}")
  foreach(library torch torch_cpu c10)
    file(WRITE "${root}/lib/lib${library}.so" "")
  endforeach()
  file(WRITE "${root}/include/torch/torch.h" "")
  file(WRITE "${root}/share/cmake/Torch/TorchConfigVersion.cmake" "set(PACKAGE_VERSION \"${version}\")
if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
")
  file(WRITE "${root}/share/cmake/Torch/TorchConfig.cmake" "set(root \"${root}\")
foreach(library torch torch_cpu c10)
  add_library(\${library} SHARED IMPORTED)
  set_target_properties(\${library} PROPERTIES IMPORTED_LOCATION \"\${root}/lib/lib\${library}.so\")
endforeach()
set_target_properties(torch PROPERTIES INTERFACE_INCLUDE_DIRECTORIES \"\${root}/include\")
set(Caffe2_DIR \"\${root}/share/cmake/Caffe2\")
${config}
")
endfunction()

# Configures the project with these arguments; its output must hold `expected` and say whether it was accepted.
function(expect outcome expected)
  file(REMOVE_RECURSE "${WORK}/build")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env --unset=CMAKE_PREFIX_PATH --unset=Torch_DIR
                          "${CMAKE_COMMAND}" -G Ninja -S "${WORK}/project" -B "${WORK}/build" ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " words "${output}")  # CMake breaks the lines of a message
  string(FIND "${words}" "${expected}" place)
  if(outcome STREQUAL "accepted" AND status EQUAL 0 AND NOT place EQUAL -1)
    return()
  elseif(outcome STREQUAL "refused" AND NOT status EQUAL 0 AND NOT place EQUAL -1)
    return()
  endif()
  message(SEND_ERROR "${ARGN}: expected to be ${outcome} with \"${expected}\", got status ${status}:\n${output}")
endfunction()

make_torch(good 2.6.0 "")
make_torch("with+signs (1)" 2.13.0 "")
make_torch(too_old 1.13.1 "")
make_torch(old_abi 2.6.0 "set(TORCH_CXX_FLAGS \"-D_GLIBCXX_USE_CXX11_ABI=0\")")
make_torch(old_abi_target 2.6.0
           "set_property(TARGET torch_cpu PROPERTY INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=0)")
make_torch(foreign_library 2.6.0
           "set_property(TARGET c10 PROPERTY IMPORTED_LOCATION \"${WORK}/good/lib/libc10.so\")")
make_torch(foreign_headers 2.6.0
           "set_property(TARGET torch PROPERTY INTERFACE_INCLUDE_DIRECTORIES \"${WORK}/good/include\")")
make_torch(foreign_caffe2 2.6.0 "set(Caffe2_DIR \"${WORK}/good/share/cmake/Caffe2\")")
make_torch(site/lib/python3/dist-packages/torch 2.6.0 "")
make_torch(site 2.6.0 "set_property(TARGET torch_cpu PROPERTY IMPORTED_LOCATION
  \"${WORK}/site/lib/python3/dist-packages/torch/lib/libtorch_cpu.so\")")
make_torch(cuda 2.6.0 "if(NOT TARGET torch::cudart OR NOT TARGET caffe2::nvrtc)
  message(FATAL_ERROR \"asked for the CUDA toolkit\")
endif()")

expect(accepted "LibTorch 2.6.0" "-DCMAKE_PREFIX_PATH=${WORK}/good")
expect(accepted "LibTorch 2.13.0" "-DCMAKE_PREFIX_PATH=${WORK}/with+signs (1)")
expect(accepted "LibTorch 2.6.0" "-DCMAKE_PREFIX_PATH=${WORK}/cuda")
expect(refused "LibTorch was not found. Run scripts/setup" "-DCMAKE_PREFIX_PATH=${WORK}/nowhere")
expect(refused "is too old: 2.6 or newer is needed. Run scripts/setup" "-DCMAKE_PREFIX_PATH=${WORK}/too_old")
expect(refused "was built with the old C++ ABI" "-DCMAKE_PREFIX_PATH=${WORK}/old_abi")
expect(refused "was built with the old C++ ABI" "-DCMAKE_PREFIX_PATH=${WORK}/old_abi_target")
foreach(mixed foreign_library foreign_headers foreign_caffe2 site)
  expect(refused "Two LibTorches are mixed" "-DCMAKE_PREFIX_PATH=${WORK}/${mixed}")
endforeach()

# What scripts/setup chose is used when nothing is given.
file(WRITE "${WORK}/project/.deps/torch_path" "${WORK}/good\n")
expect(accepted "LibTorch 2.6.0: ${WORK}/good")
