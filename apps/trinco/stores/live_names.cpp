#include "apps/trinco/stores/live_names.hpp"

#include <chrono>
#include <utility>

#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "core/names.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

constexpr auto limit = 500ms;  // who presses a key does not wait longer
constexpr std::size_t most = 500;

// The settings and the store they name, when all is well.
struct opened {
    settings with;
    store where;
};

std::optional<opened> open_quietly(const store_flags& flags, needs what) {
    auto loaded = settings_for(flags, {what});
    auto* const with = std::get_if<settings>(&loaded);
    if (with == nullptr) return std::nullopt;
    with->warnings.clear();
    auto where = open_store(*with, what);
    auto* const found = std::get_if<store>(&where);
    if (found == nullptr) return std::nullopt;
    return opened{std::move(*with), std::move(*found)};
}

}  // namespace

std::vector<std::string> live_locks(const store_flags& flags) {
    const auto at = open_quietly(flags, needs::locks);
    if (!at) return {};
    const std::string& prefix = at->with.prefix;
    const auto page = ask_locks<detail::entries>(
        at->where, limit, [&](detail::lock_store& from, detail::deadline by, auto done) {
            return from.list(prefix, "", most, by, std::move(done));
        });
    std::vector<std::string> names;
    for (const detail::entry& row : page.value.rows) {
        std::string name = row.name.substr(prefix.size());
        const bool is_new = names.empty() || names.back() != name;
        if (is_new && !detail::check_lock_name(row.name)) names.push_back(std::move(name));
    }
    return names;
}

std::vector<std::string> live_breakers(const store_flags& flags) {
    const auto at = open_quietly(flags, needs::breakers);
    if (!at) return {};
    const auto page = ask_breakers<detail::page>(
        at->where, limit, [](detail::breaker_store& from, detail::deadline by, auto done) {
            return from.inspect("", "", most, by, std::move(done));
        });
    std::vector<std::string> names;
    for (const detail::report& row : page.value.rows) {
        if (!detail::check_breaker_name(row.breaker)) names.push_back(row.breaker);
    }
    return names;
}

}  // namespace trinco::program
