// The two executables of the program. They are one program to everybody:
//
//   trinco        is what people call, and starts in a moment: it has no store but those of this
//                 machine, local: and memory:
//   trinco-fleet  is the whole program, with the stores that are servers. To load their libraries
//                 (TLS and more) takes longer than a whole `trinco lock` on this machine
//
// When trinco needs a store that it does not have, the process goes on as trinco-fleet, by exec:
// with the same words, environment, descriptors and signals, so that nobody sees a difference.
// trinco-fleet is in ../libexec/trinco when installed, beside trinco when built; it never goes on
// as another one. Why: docs/decisions/0027-two-executables.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

// What the process was started with; kept, not copied. First thing in main.
void remember_words(char** argv) noexcept;

// Whether this executable has all the stores of this build.
[[nodiscard]] bool has_every_store();

// Where trinco-fleet is; nothing when it is missing.
[[nodiscard]] std::optional<std::filesystem::path> fleet_file();
// Goes on as that one. Before there is a thread; comes back only with the reason why it cannot be.
[[nodiscard]] problem go_on_as(const std::filesystem::path& fleet);
// Begins anew as the executable that runs, with the same words; from any thread, which ends all
// others with everything they have open. Comes back only with the reason why it cannot be.
[[nodiscard]] problem go_on_anew();
// What there is to say when it is missing and a store is needed: where it belongs.
[[nodiscard]] problem no_fleet_for(const std::string& shown_url);

// The file that people call: trinco, also in trinco-fleet. Empty: not found.
[[nodiscard]] std::filesystem::path program_file();

}  // namespace trinco::program
