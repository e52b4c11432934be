# Writes redis_scripts.cpp: each script as a text, its pieces before it, in the order of its line
# "-- uses: ...". A piece of the line "-- late: ..." becomes a function of that name, which the
# pieces before it may call, too; it returns a table of what it makes. Called with -DLUA=<folder>
# -DOUT=<file>.
cmake_minimum_required(VERSION 3.25)

set(names exchange look probe control inspect index)
file(READ "${LUA}/time_redis.lua" time_source)

set(bodies "")
set(names_of "")
foreach(name IN LISTS names)
  file(READ "${LUA}/${name}.lua" script)
  if(NOT script MATCHES "\n-- uses: ([a-z0-9_ ]+)\n")
    message(FATAL_ERROR "${name}.lua has no line '-- uses: ...'")
  endif()
  string(REPLACE " " ";" pieces "${CMAKE_MATCH_1}")
  set(late "")
  if(script MATCHES "\n-- late: ([a-z0-9_ ]+)\n")
    string(REPLACE " " ";" late "${CMAKE_MATCH_1}")
  endif()
  set(body "")
  if(late)
    list(JOIN late ", " all_late)
    set(body "local ${all_late}\n\n")
  endif()
  list(REMOVE_ITEM pieces nothing)
  foreach(piece IN LISTS pieces)
    file(READ "${LUA}/${piece}.lua" text)
    string(APPEND body "${text}\n")
  endforeach()
  foreach(piece IN LISTS late)
    file(READ "${LUA}/${piece}.lua" text)
    string(APPEND body "function ${piece}()\n${text}end\n\n")
  endforeach()
  string(APPEND body "${script}")
  foreach(piece IN ITEMS layout_1 option_texts options)
    if(body MATCHES "[^a-z_.]${piece}\\(\\)" AND NOT piece IN_LIST late)
      message(FATAL_ERROR "${name}.lua calls ${piece}() and does not name it as late")
    endif()
  endforeach()
  string(SHA1 sha "${time_source}${body}")
  string(APPEND bodies "constexpr char ${name}_text[] = R\"LUA(${time_source}${body})LUA\";\n"
         "constexpr std::string_view ${name}_name = \"${sha}\";\n\n")
  string(APPEND names_of
         "        case redis_script::${name}: return ${name}_name;\n")
endforeach()

file(WRITE "${OUT}" "// Made from lua/*.lua by embed_scripts.cmake.
#include \"store/redis/redis_scripts.hpp\"

namespace trinco::detail {
namespace {

constexpr char time_text[] = R\"LUA(${time_source})LUA\";

${bodies}}  // namespace

std::string_view redis_time_source() noexcept {
    return {time_text, sizeof time_text - 1};
}

std::string_view text_of(redis_script s) noexcept {
    switch (s) {
        case redis_script::exchange: return {exchange_text, sizeof exchange_text - 1};
        case redis_script::look: return {look_text, sizeof look_text - 1};
        case redis_script::probe: return {probe_text, sizeof probe_text - 1};
        case redis_script::control: return {control_text, sizeof control_text - 1};
        case redis_script::inspect: return {inspect_text, sizeof inspect_text - 1};
        case redis_script::index: return {index_text, sizeof index_text - 1};
    }
    return {};
}

std::string_view name_of(redis_script s) noexcept {
    switch (s) {
${names_of}    }
    return {};
}

}  // namespace trinco::detail
")
