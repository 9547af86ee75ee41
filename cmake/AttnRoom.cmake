# A room is one static library, attn_<name>, that links only what it may include (README, "The rooms").
#
#   attn_add_room(<name> SOURCES a.cpp b.cpp [PUBLIC libs...] [PRIVATE libs...])
#   attn_add_room_test(<name> SOURCES a_test.cpp ... [LIBS libs...])      one GoogleTest program a room
function(attn_add_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(attn_${name} STATIC ${ROOM_SOURCES})
  add_library(attn::${name} ALIAS attn_${name})
  set_target_properties(attn_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(attn_${name} PUBLIC cxx_std_20)
  target_include_directories(attn_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(attn_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE} $<BUILD_INTERFACE:attn_warnings>)
endfunction()

function(attn_add_room_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(attn_${name}_test ${TEST_SOURCES})
  target_include_directories(attn_${name}_test PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(attn_${name}_test PRIVATE attn_${name} ${TEST_LIBS} GTest::gtest_main rapidcheck_gtest attn_warnings)
  add_test(NAME ${name} COMMAND attn_${name}_test WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  # Test programs run side by side: with more threads than cores OpenMP's waiting loops take nearly all of the time.
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()
