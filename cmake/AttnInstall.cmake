# `cmake --install`: the program, and the library rooms as the CMake package `attn` (find_package(attn), attn::attention).
# Installed headers are included as <attn/attention/multi_head_attention.h>.
include(CMakePackageConfigHelpers)

set(_attn_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/attn")
set(_attn_library_rooms core files config attention)
# What a user of the library needs of the rooms below `attention`; none of these shows the JSON library.
set(_attn_public_headers core/error.h core/matrix.h core/text.h files/safetensors.h files/whole_file.h
                         config/attention_config.h config/mask_config.h config/rope_config.h config/run_config.h
                         config/tokenizer.h)
file(GLOB _attn_attention_headers RELATIVE "${PROJECT_SOURCE_DIR}/src" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/attention/*.h")

# The installed program finds LibTorch where it was built with it.
get_target_property(_attn_torch_file torch LOCATION)
cmake_path(GET _attn_torch_file PARENT_PATH _attn_torch_lib)
set_target_properties(attn-cli PROPERTIES INSTALL_RPATH "${_attn_torch_lib}")
install(TARGETS attn-cli)

foreach(room IN LISTS _attn_library_rooms)
  # Headers name each other as "room/header.h", so that folder's parent is searched as well.
  target_include_directories(attn_${room} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attn>)
  install(TARGETS attn_${room} EXPORT attnTargets)
endforeach()
foreach(header IN LISTS _attn_public_headers _attn_attention_headers)
  cmake_path(GET header PARENT_PATH room)
  install(FILES "${PROJECT_SOURCE_DIR}/src/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/attn/${room}")
endforeach()

install(EXPORT attnTargets NAMESPACE attn:: DESTINATION "${_attn_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/attnConfig.cmake.in" "${PROJECT_BINARY_DIR}/attnConfig.cmake"
                              INSTALL_DESTINATION "${_attn_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attnConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/attnConfig.cmake" "${PROJECT_BINARY_DIR}/attnConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/AttnCudaTargets.cmake" DESTINATION "${_attn_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
