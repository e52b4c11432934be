// What the library says of a session, in the program's words.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// Without "trinco: ", which complain() puts in front of every sentence.
[[nodiscard]] std::string without_name(std::string_view sentence);

// Why renewals fail, as far as the store knows.
[[nodiscard]] std::string renewal_trouble(const store& at);

// Says so when the store keeps the session's lease for longer than was asked for.
void say_longer_ttl(const store& at, const session& of, std::chrono::seconds asked);

}  // namespace trinco::program
