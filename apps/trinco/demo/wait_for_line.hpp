// How a process of the demonstration is told to go on.
#pragma once

#include <cstdio>

namespace trinco::program::demo {

// Of standard input, or for its end.
inline void wait_for_line() {
    for (int c = 0; c != '\n' && c != EOF;) c = std::getchar();
}

}  // namespace trinco::program::demo
