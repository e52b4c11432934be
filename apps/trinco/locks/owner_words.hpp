// Whose an entry of a lock is, and for how long, as far as the store knows: entries of other
// programs (etcdctl, Go) say nothing of their owner, and a grant's time appears a moment after it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "store/lock_store.hpp"

namespace trinco::program {

// What the owner says of itself, else "lease 13b0a22cff34d69f", by which the store's own tools find
// it.
[[nodiscard]] std::string owner_name(const detail::entry& e);
// The same in a sentence, in quotes and no longer than that: "vm:12 sh"; or: a program that does
// not say who it is (lease 13b0a22cff34d69f).
[[nodiscard]] std::string owner_words(const detail::entry& e, std::size_t shown);
// How long it has been what it is: held, or waiting.
[[nodiscard]] std::optional<std::chrono::milliseconds> age_of(const detail::entry& e) noexcept;
// " for 3 s"; empty when that is not known.
[[nodiscard]] std::string age_words(const detail::entry& e);

}  // namespace trinco::program
