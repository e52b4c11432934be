// The stores that are servers, as the rest of the program sees them. Their code is in trinco-fleet
// alone, one of the two executables (start/executables.hpp), which says at its start what it has. A
// new one is a function in apps/trinco/servers and a line in fleet_main.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/demo/shared_store.hpp"
#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/problem.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct server_store {
    driver how;
    // What `trinco doctor` finds out; null: it keeps none of these, which opening it says.
    void (*examine_breakers)(const settings& with, doctor::examination& to) = nullptr;
    void (*examine_locks)(const settings& with, doctor::examination& to) = nullptr;
    // Takes away what `trinco demo` left in its namespace. False, or null: it ends by itself.
    bool (*clear)(const demo::shared_store& from) = nullptr;
    // Removes what is no breaker from under the keys of one, for `trinco breakers forget --force`;
    // the keys. Null: nothing else can lie there.
    std::variant<std::vector<std::string>, problem> (*remove_foreign)(
        const settings& with, const std::string& breaker) = nullptr;
    // Why it can have no lock of this name, or none whose name begins so, though a store can: a
    // sentence. Null: it can have all (core/names.hpp).
    std::optional<std::string> (*check_lock_name)(std::string_view name,
                                                  bool is_beginning) = nullptr;
};

// Once, before any store is opened and before there is a thread.
void offer_servers(std::vector<server_store> all);
// Those of this executable; none in trinco.
[[nodiscard]] std::span<const server_store> server_stores();
// The one of a URL, or null.
[[nodiscard]] const server_store* server_of(std::string_view url);
// Nothing when the store of this URL can have locks that are called so, or begin so; else why not.
// Asked for one that it cannot have, a server may answer as if it were another program.
[[nodiscard]] std::optional<std::string> check_lock_name_at(std::string_view url,
                                                            std::string_view name,
                                                            bool is_beginning = false);

}  // namespace trinco::program
