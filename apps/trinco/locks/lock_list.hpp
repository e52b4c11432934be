// The locks of a store, read page by page.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/trinco/problem.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "store/lock_store.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct lock_row {
    std::string name;
    std::vector<detail::entry> holders;  // in the order of the queue
    std::vector<detail::entry> waiters;
    bool lists_waiters = true;  // else it is not known who waits
};

// A name on the command line, and the store's: with the prefix of the settings in front.
struct lock_scope {
    std::string prefix{};
    std::string beginning{};  // of the names that are meant
    bool whole_name = false;  // only the name that is equal to it
};

[[nodiscard]] bool lists_waiters(const store& at);

// Nothing when it is good, else one sentence; the code is that of usage.
[[nodiscard]] std::optional<problem> check_scope(const lock_scope& scope);

// By name, without the prefix. A page is waited for at most 5 s, and no longer than it is wanted.
[[nodiscard]] std::variant<std::vector<lock_row>, problem> list_locks(
    const store& at, const lock_scope& scope, const given_up& unwanted = {});

// Adds the entries of a page that are meant, behind those of the pages before. Pure.
void add_entries(std::vector<lock_row>& to, const std::vector<detail::entry>& page,
                 const lock_scope& scope);

}  // namespace trinco::program
