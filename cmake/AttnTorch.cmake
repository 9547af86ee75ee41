# LibTorch, through its own CMake package: target `torch`.
# It is looked for in CMAKE_PREFIX_PATH=<folder that holds share/cmake and lib>; where that is not given, in the folder
# that scripts/setup chose. One that we cannot use is refused here, with one message that says what to do:
# too old, built with the old C++ ABI, or put together from two places.
set(ATTN_OLDEST_TORCH 2.6)
set(ATTN_TORCH_HELP "Run scripts/setup, or give -DCMAKE_PREFIX_PATH=<folder that holds share/cmake and lib>.")

# Stops unless every part of the LibTorch that was found lies in the folder its package file came from. Parts of
# another one get in when its folder is searched first: the program then crashes, or computes with the wrong library.
function(attn_require_one_torch)
  file(REAL_PATH "${Torch_DIR}" package_dir)
  string(REGEX REPLACE "/(share|lib|lib64|lib/[^/]+)/cmake/Torch$" "" root "${package_dir}")

  get_target_property(include_dirs torch INTERFACE_INCLUDE_DIRECTORIES)
  set(parts "${Caffe2_DIR}" ${include_dirs})
  foreach(library torch torch_cpu c10)
    if(TARGET ${library})
      get_target_property(file ${library} LOCATION)
      list(APPEND parts "${file}")
    endif()
  endforeach()

  foreach(part IN LISTS parts)
    file(REAL_PATH "${part}" real_part)
    cmake_path(IS_PREFIX root "${real_part}" is_inside)
    cmake_path(RELATIVE_PATH real_part BASE_DIRECTORY "${root}" OUTPUT_VARIABLE place)
    if(NOT is_inside OR NOT place MATCHES "^(include|share/cmake|lib(64)?/([^/]+/)?cmake|lib(64)?/([^/]+/)?lib[^/]+$)")
      message(FATAL_ERROR "Two LibTorches are mixed: the package is ${Torch_DIR}, but it uses ${part}. "
                          "Remove the build folder, unset Torch_DIR and TORCH_INSTALL_PREFIX. ${ATTN_TORCH_HELP}")
    endif()
  endforeach()
endfunction()

# Stops when this LibTorch was built with the C++ ABI from before 2015, whose std::string no compiler uses by default.
function(attn_require_new_abi)
  set(flags "${TORCH_CXX_FLAGS}")
  foreach(library torch torch_cpu c10)
    foreach(property INTERFACE_COMPILE_DEFINITIONS INTERFACE_COMPILE_OPTIONS)
      if(TARGET ${library})
        get_target_property(value ${library} ${property})
        string(APPEND flags " ${value}")
      endif()
    endforeach()
  endforeach()
  if(flags MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    message(FATAL_ERROR "The LibTorch in ${Torch_DIR} was built with the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0): "
                        "one with the new ABI is needed. ${ATTN_TORCH_HELP}")
  endif()
endfunction()

set(_attn_chosen "${CMAKE_CURRENT_LIST_DIR}/../.deps/torch_path")
if(NOT CMAKE_PREFIX_PATH AND NOT DEFINED ENV{CMAKE_PREFIX_PATH} AND NOT Torch_DIR AND EXISTS "${_attn_chosen}")
  file(STRINGS "${_attn_chosen}" CMAKE_PREFIX_PATH LIMIT_COUNT 1)
endif()
unset(_attn_chosen)

include(AttnCudaTargets)
set(kineto_LIBRARY "not linked")  # the profiler's library is in no LibTorch; else its absence is a long warning
find_package(Torch ${ATTN_OLDEST_TORCH} QUIET)
unset(kineto_LIBRARY)

if(NOT Torch_FOUND)
  list(GET Torch_CONSIDERED_VERSIONS 0 _attn_version)
  if(_attn_version VERSION_LESS ATTN_OLDEST_TORCH AND _attn_version)
    list(GET Torch_CONSIDERED_CONFIGS 0 _attn_config)
    message(FATAL_ERROR "LibTorch ${_attn_version} (${_attn_config}) is too old: "
                        "${ATTN_OLDEST_TORCH} or newer is needed. ${ATTN_TORCH_HELP}")
  endif()
  message(FATAL_ERROR "LibTorch was not found. ${ATTN_TORCH_HELP}")
endif()
attn_require_one_torch()
attn_require_new_abi()
message(STATUS "LibTorch ${Torch_VERSION}: ${Torch_DIR}")
