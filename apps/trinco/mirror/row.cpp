#include "apps/trinco/mirror/row.hpp"

#include <sys/random.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "apps/trinco/mirror/server_mirror.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/loop.hpp"
#include "core/names.hpp"

namespace trinco::program::row {
namespace {

constexpr auto patience = server_mirror::patience;

std::uint64_t random_id() {
    std::uint64_t id = 0;
    // Never fails for so few bytes once the machine has begun; should it, the clock is as good.
    if (::getentropy(&id, sizeof id) != 0) {
        id = static_cast<std::uint64_t>(detail::boot_clock::now().time_since_epoch().count());
    }
    return id | 1U;
}

}  // namespace

std::optional<detail::report> read(const store& in, const std::string& breaker) {
    auto page = ask_breakers<detail::page>(
        in, patience, [&](detail::breaker_store& at, auto by, auto done) {
            return at.inspect(breaker, "", 1, by, std::move(done));
        });
    // The first of those that begin with the name is this breaker, if there is one.
    if (page.error || page.value.rows.empty()) return std::nullopt;
    if (page.value.rows.front().breaker != breaker) return std::nullopt;
    return std::move(page.value.rows.front());
}

detail::view look(const store& in, const std::string& breaker) {
    const detail::look_request question{breaker, {}};
    auto seen = ask_breakers<detail::glance>(in, patience,
                                             [&](detail::breaker_store& at, auto by, auto done) {
                                                 return at.look(question, by, std::move(done));
                                             });
    return seen.error ? detail::view{} : std::move(seen.value.fleet);
}

std::optional<detail::verdict> exchange(const store& in, const detail::news& n) {
    auto reply = ask_breakers<std::vector<detail::verdict>>(
        in, patience, [&](detail::breaker_store& at, auto by, auto done) {
            return at.exchange({&n, 1}, by, std::move(done));
        });
    if (reply.error || reply.value.empty() || reply.value.front().error) return std::nullopt;
    return std::move(reply.value.front());
}

std::optional<detail::view> control(const store& in, detail::control_request what) {
    what.id = random_id();
    if (!detail::is_one_line(what.reason)) what.reason.clear();
    if (what.reason.size() > detail::max_reason) what.reason.resize(detail::max_reason);
    auto reply = ask_breakers<detail::view>(in, patience,
                                            [&](detail::breaker_store& at, auto by, auto done) {
                                                return at.control(what, by, std::move(done));
                                            });
    if (reply.error) return std::nullopt;
    return std::move(reply.value);
}

}  // namespace trinco::program::row
