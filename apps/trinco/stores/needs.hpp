// What a command needs a store for.
#pragma once

#include <cstdint>

namespace trinco::program {

enum class needs : std::uint8_t { breakers, locks };

}  // namespace trinco::program
