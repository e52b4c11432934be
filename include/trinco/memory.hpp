// The driver of memory: breakers and locks of one process, kept in its memory.
//
//     auto memory = trinco::drivers::memory();
//     auto a = trinco::open("memory:", {memory});
//     auto b = trinco::open("memory:", {memory});       // sees what a sees
//     auto c = trinco::open("memory:other", {memory});  // does not
//
// For tests, examples and programs of one process whose code shall run against a server later.
// Locks are shared under one NAME, breakers under one NAME and namespace. NAME: at most 64 of
// [A-Za-z0-9._:-]. What is kept is forgotten when the last store and the last copy of the driver
// are gone, not before; two calls of memory() share nothing.
//
// Bounds: 1,024 names (and namespaces) a driver (errc::busy).
// Thread-safety: a driver may be copied and used from any thread. After fork a child makes its own
// (errc::forked).
#pragma once

#include "trinco/store.hpp"

namespace trinco::drivers {

[[nodiscard]] driver memory();

}  // namespace trinco::drivers
