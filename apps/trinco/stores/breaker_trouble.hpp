// What is said when a store of breakers did not do what was asked: what was wanted of which store,
// why it failed, and what to do next.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// " --breakers redis://ann@10.0.0.7 --namespace shop": names the settings' store behind any
// command, quoted for a shell. A URL that holds a password comes from this shell's variables or a
// file, and is left out.
[[nodiscard]] std::string store_words(const settings& with);

// Why it does not serve as it should, in the store's own words; empty when it says nothing.
[[nodiscard]] std::string trouble_of(const store& at);

enum class asked : std::uint8_t { to_read, to_change };

// "could not trip the breaker pay at redis://h: the server answers READONLY: ...; nothing was
// changed; 'trinco doctor --breakers redis://h' says more". `action`: "trip the breaker pay";
// `words`: store_words(). Asks the store for its trouble. Code: 77 denied, 64 invalid, else 69.
[[nodiscard]] problem breaker_problem(const store& at, std::string_view action, asked for_what,
                                      const std::error_code& error, std::string_view words);

// Why `error` was answered, in the store's own words where it has some: no full stop.
[[nodiscard]] std::string reason_text(const std::error_code& error, const std::string& trouble);

}  // namespace trinco::program
