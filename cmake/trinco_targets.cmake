# What every target of the project shares, in a few functions.

add_library(trinco_flags INTERFACE)
target_compile_options(trinco_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -fvisibility=hidden -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 takes `"text" + string` for overlapping memory (its bug 105329).
  target_compile_options(trinco_flags INTERFACE -Wno-restrict)
endif()
if(TRINCO_SANITIZE)
  target_compile_options(trinco_flags INTERFACE -fsanitize=${TRINCO_SANITIZE} -g
                         -fno-omit-frame-pointer)
  target_link_options(trinco_flags INTERFACE -fsanitize=${TRINCO_SANITIZE})
endif()
if(TRINCO_MUTANTS)
  target_compile_definitions(trinco_flags INTERFACE TRINCO_MUTANTS=1)
endif()
find_package(Threads REQUIRED)

# trinco_add_to_group(tests_stress some_test): the target tests_stress builds some_test, too.
function(trinco_add_to_group group name)
  if(NOT TARGET ${group})
    add_custom_target(${group})
  endif()
  add_dependencies(${group} ${name})
endfunction()

# trinco_library(core SOURCES a.cpp LINKS trinco::other): target trinco_core, alias trinco::core.
function(trinco_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(trinco_${name} STATIC ${arg_SOURCES})
  add_library(trinco::${name} ALIAS trinco_${name})
  target_include_directories(trinco_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(trinco_${name} PUBLIC cxx_std_20)
  target_link_libraries(trinco_${name} PUBLIC ${arg_LINKS} Threads::Threads
                        PRIVATE $<BUILD_INTERFACE:trinco_flags>)
  set_target_properties(trinco_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY TRINCO_LIBRARIES trinco_${name})
endfunction()

# trinco_executable(name SOURCES main.cpp LINKS trinco::core)
function(trinco_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE ${arg_LINKS} trinco_flags)
endfunction()

# The COST of tests that compute: ctest begins with what costs most, and what waits comes after.
set(TRINCO_COMPUTES 1000)

# What tests add to the flags. Compiling them takes most of a build, running them little of it.
set(TRINCO_TEST_FLAGS $<$<CONFIG:Release>:-O1>)

# trinco_test(window_test SOURCES ... LINKS ... [LABELS stress] [TIMEOUT 300]): every TEST of the
# executable becomes a test of ctest. Labels with a meaning beyond a name:
#   realtime   waits for the real clock, so it runs after all that compute, beside its like
#   alone      measures, or keeps both cores busy: nothing runs beside it
#   stress     several real threads; built by the target tests_stress and run under TSan
#   bytes      reads what a peer may send; built by the target tests_bytes and run under ASan and
#              UBSan also where time is short
function(trinco_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  trinco_executable(${name} SOURCES ${arg_SOURCES}
                    LINKS ${arg_LINKS} GTest::gtest GTest::gtest_main rapidcheck)
  target_compile_options(${name} PRIVATE ${TRINCO_TEST_FLAGS})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  foreach(label IN LISTS arg_LABELS)
    trinco_add_to_group(tests_${label} ${name})
  endforeach()
  set(alone FALSE)
  if("alone" IN_LIST arg_LABELS)
    set(alone TRUE)
  endif()
  set(cost ${TRINCO_COMPUTES})
  if("realtime" IN_LIST arg_LABELS)
    set(cost 0)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}. TEST_LIST ${name}_tests NO_PRETTY_VALUES
                       DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${alone} COST ${cost})
  # More than one label does not survive the way through gtest_discover_tests.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  file(CONFIGURE OUTPUT ${labels_file} @ONLY CONTENT
       "set_tests_properties(\${@name@_tests} PROPERTIES LABELS \"@arg_LABELS@\")\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()
