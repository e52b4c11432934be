# trinco_mutant_test(lock_sim_test "LockSim.*" lock_debts_ignored): a test of label `mutants` that
# runs the test executable with one planted bug alive and passes only when a seed catches it. In a
# build without TRINCO_MUTANTS it adds nothing, since the bugs are not compiled in.
#
# The executable is run under its own time limit; it must fail by an assertion (exit code 1, not a
# crash and not the limit) and print a line with "seed", which is shown.
function(trinco_mutant_test test_binary filter mutant)
  if(NOT TRINCO_MUTANTS)
    return()
  endif()
  string(REGEX REPLACE "[^A-Za-z]+" "." suite ${filter})
  string(REGEX REPLACE "\\.$" "" suite ${suite})
  set(name mutants.${suite}.${mutant})
  add_test(NAME ${name}
           COMMAND ${CMAKE_COMMAND}
             -D test=$<TARGET_FILE:${test_binary}> -D filter=${filter} -D mutant=${mutant}
             -P ${PROJECT_SOURCE_DIR}/cmake/run_mutant.cmake)
  trinco_add_to_group(tests_mutants ${test_binary})
  set_tests_properties(${name} PROPERTIES LABELS mutants TIMEOUT 300
                       SKIP_REGULAR_EXPRESSION "nothing to run it on")
endfunction()
