# `cmake --install`: the program, and the library rooms as the CMake package `attn` (find_package(attn), attn::attention).
# Installed headers are included as <attn/attention/multi_head_attention.h>.
include(CMakePackageConfigHelpers)

set(_attn_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/attn")
set(_attn_library_rooms core files config attention)

install(TARGETS attn-cli)
foreach(room IN LISTS _attn_library_rooms)
  # Headers name each other as "room/header.h", so that folder's parent is searched as well.
  target_include_directories(attn_${room} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attn>)
  install(TARGETS attn_${room} EXPORT attnTargets)
  # The two that show nlohmann/json stay behind: a user of the package needs no JSON library.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/${room}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/attn"
          FILES_MATCHING PATTERN "*.h"
          PATTERN "strict_json.h" EXCLUDE PATTERN "config_file.h" EXCLUDE)
endforeach()

install(EXPORT attnTargets NAMESPACE attn:: DESTINATION "${_attn_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/attnConfig.cmake.in" "${PROJECT_BINARY_DIR}/attnConfig.cmake"
                              INSTALL_DESTINATION "${_attn_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/attnConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/attnConfig.cmake" "${PROJECT_BINARY_DIR}/attnConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/AttnCudaTargets.cmake" DESTINATION "${_attn_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
