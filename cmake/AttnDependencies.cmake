find_package(CLI11 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
# Without this a JSON value turns silently into any number, string or bool.
target_compile_definitions(nlohmann_json::nlohmann_json INTERFACE JSON_USE_IMPLICIT_CONVERSIONS=0)

# Debian's libdeflate and stb bring no CMake package.
find_path(ATTN_STB_INCLUDE stb/stb_image_write.h REQUIRED)
find_path(ATTN_LIBDEFLATE_INCLUDE libdeflate.h REQUIRED)
find_library(ATTN_LIBDEFLATE_LIBRARY deflate REQUIRED)
add_library(attn_png_encoder INTERFACE)
target_include_directories(attn_png_encoder SYSTEM INTERFACE "${ATTN_STB_INCLUDE}" "${ATTN_LIBDEFLATE_INCLUDE}")
target_link_libraries(attn_png_encoder INTERFACE "${ATTN_LIBDEFLATE_LIBRARY}")
