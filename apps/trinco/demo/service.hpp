// A service that sells tickets until there is none left: `trinco demo-service`.
//
// Customers come at random, every 20 to 180 ms. Without a lock it makes each sale itself; with one
// it runs, for each, `trinco lock tickets --ttl 2s -- trinco demo-sell ...`. The lines of sale.hpp
// appear on its stdout, and with a lock two more:
//
//     starts WRAPPER           the process of `trinco lock`, which waits its turn from now on
//     ends CODE WRAPPER        as shells tell it
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/demo/cast.hpp"
#include "apps/trinco/demo/sale.hpp"

namespace trinco::program::demo {

struct service_settings {
    std::filesystem::path shop;
    std::string seller;
    std::uint32_t seed = 1;
    std::string locks = {};  // the store's URL, may hold a password; empty: sells without a lock
    std::vector<part> parts = {};
    std::filesystem::path errors = {};
};

// The role that plays it.
[[nodiscard]] role service_role(const service_settings& of);

// How to run something under a lock of the demonstration; TRINCO_LOCKS of its role has the store.
[[nodiscard]] std::vector<std::string> under_lock(std::string_view name,
                                                  const std::vector<std::string>& words);

inline constexpr std::chrono::seconds ttl_shown{2};

}  // namespace trinco::program::demo
