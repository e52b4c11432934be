// How a command that is run once has ended, as its record keeps it: what it wrote to standard
// output, behind its exit code when that was not 0. Pure.
#pragma once

#include <string>

#include "core/lock/once.hpp"

namespace trinco::program {

struct recorded_end {
    int code = 0;
    std::string output;
    bool operator==(const recorded_end&) const = default;
};

// "exit 7", a line break, the output; of code 0 the output alone.
[[nodiscard]] std::string payload_of(const recorded_end& end);
// Of a record that is done or failed. A failure that no command has written (of the library) is
// its text, with code 1.
[[nodiscard]] recorded_end end_of(const detail::once_record& record);

}  // namespace trinco::program
