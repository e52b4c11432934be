# What every target of the project shares, in three functions.

add_library(trinco_flags INTERFACE)
target_compile_features(trinco_flags INTERFACE cxx_std_20)
target_compile_options(trinco_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -fvisibility=hidden -fvisibility-inlines-hidden)
if(TRINCO_SANITIZE)
  target_compile_options(trinco_flags INTERFACE -fsanitize=${TRINCO_SANITIZE} -g
                         -fno-omit-frame-pointer)
  target_link_options(trinco_flags INTERFACE -fsanitize=${TRINCO_SANITIZE})
endif()
if(TRINCO_MUTANTS)
  target_compile_definitions(trinco_flags INTERFACE TRINCO_MUTANTS=1)
endif()
find_package(Threads REQUIRED)

# trinco_library(core SOURCES a.cpp b.cpp LINKS trinco_other): target trinco_core, alias trinco::core.
function(trinco_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(trinco_${name} STATIC ${arg_SOURCES})
  add_library(trinco::${name} ALIAS trinco_${name})
  target_include_directories(trinco_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(trinco_${name} PUBLIC ${arg_LINKS} Threads::Threads
                        PRIVATE $<BUILD_INTERFACE:trinco_flags>)
  set_target_properties(trinco_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        EXPORT_NAME ${name})
endfunction()

# trinco_executable(name SOURCES main.cpp LINKS trinco::core)
function(trinco_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} trinco_flags)
endfunction()

# trinco_test(window_test SOURCES ... LINKS ... [LABELS sim] [TIMEOUT 300]): every TEST of the
# executable becomes a test of ctest.
function(trinco_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  trinco_executable(${name} SOURCES ${arg_SOURCES}
                    LINKS ${arg_LINKS} GTest::gtest GTest::gtest_main rapidcheck)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
