# cmake -D build=... -D source=... -D work=... -D compiler=... -P install_and_use.cmake
function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${code}:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/installed)

# Only the public headers, and no path of the machine that built it.
file(GLOB_RECURSE headers RELATIVE ${work}/installed/include ${work}/installed/include/*)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^trinco/[a-z_]+\\.hpp$")
    message(FATAL_ERROR "installed, but not a public header: ${header}")
  endif()
endforeach()
file(GLOB_RECURSE scripts ${work}/installed/*.cmake)
if(NOT scripts)
  message(FATAL_ERROR "no package description was installed")
endif()
foreach(script IN LISTS scripts)
  file(READ ${script} text)
  string(FIND "${text}" "${build}" position)
  if(NOT position EQUAL -1)
    message(FATAL_ERROR "${script} names the build folder ${build}")
  endif()
endforeach()

# The program finds its second executable where it was installed, with nobody to talk to there.
if(program AND local AND redis)
  file(WRITE ${work}/none.toml "")
  set(ENV{TRINCO_CONFIG} ${work}/none.toml)
  set(ENV{TRINCO_BREAKERS_MIRROR} none)
  execute_process(COMMAND ${work}/installed/bin/trinco call b --on-no-store run
                          --breakers redis://127.0.0.1:1 -- sh -c "readlink /proc/$PPID/exe"
                  OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT output MATCHES "/trinco/trinco-fleet\n$")
    message(FATAL_ERROR "the installed trinco did not go on as trinco-fleet: ${output}${error}")
  endif()
endif()

set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${launcher}")
set(configure ${CMAKE_COMMAND} -G Ninja -S ${source} -D CMAKE_PREFIX_PATH=${work}/installed
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_FLAGS=${flags})
run(${configure} -B ${work}/consumer -D LOCAL=${local} -D REDIS=${redis}
    -D ETCD=${etcd} -D CONSUL=${consul})
run(${CMAKE_COMMAND} --build ${work}/consumer)
run(${work}/consumer/consumer)
if(local)
  run(${work}/consumer/local_consumer ${work}/local.db)
endif()
if(redis)
  run(${work}/consumer/redis_consumer)
endif()
if(etcd)
  run(${work}/consumer/etcd_consumer)
endif()
if(consul)
  run(${work}/consumer/consul_consumer)
endif()

# A component that does not exist makes the package not found, with its name.
execute_process(COMMAND ${configure} -B ${work}/unknown -D COMPONENT=submarine
                OUTPUT_QUIET ERROR_VARIABLE output RESULT_VARIABLE code)
if(code EQUAL 0 OR NOT output MATCHES "submarine")
  message(FATAL_ERROR "an unknown component was accepted (${code}):\n${output}")
endif()
