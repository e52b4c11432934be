// What went wrong, and how the program ends for it: one sentence for people, one code for scripts.
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace trinco::program {

struct problem {
    int code = 0;          // of exit_codes.hpp
    std::string sentence;  // without "trinco: " and without a full stop; says what, where, and what
                           // to do or what is allowed
    std::error_code error = {};  // what a store answered, where one did
};

// The code for an error of a store: 77 denied, 64 invalid and not_supported (a wrong name; of URLs
// see open_store.hpp),
// 75 conflict and not_acquired, 76 lost, otherwise 69.
[[nodiscard]] int exit_code_of(const std::error_code& error) noexcept;

// Writes "trinco: SENTENCE\n" to standard error and returns the code.
int complain(const problem& what);
// A line for people that is no failure, in the same form.
void say(std::string_view sentence);

}  // namespace trinco::program
