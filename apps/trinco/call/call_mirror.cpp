#include "apps/trinco/call/call_mirror.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/call/mirror_names.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

// Of a file that others may be writing to, on a machine that may be busy: without it the call would
// go unprotected. It answers within a millisecond or two.
constexpr std::chrono::milliseconds patience{2'000};

store open_local(const settings& with, const std::string& name_space) {
    store_settings how;
    how.name_space = name_space;
    how.instance = call_instance_name();
    how.voter = with.instance;
    std::error_code error;
    return trinco::open(with.mirror_url, all_drivers(), how, error);
}

}  // namespace

call_mirror::call_mirror(std::string breaker, const call_rules& rules, store stand_in, store memory)
    : breaker_(std::move(breaker)),
      options_(rules.options),
      stand_in_(std::move(stand_in)),
      memory_(std::move(memory)) {
    options_.store_timeout = patience;
    options_.degraded_after = std::max(options_.degraded_after, patience);
}

std::optional<call_mirror> call_mirror::open(const settings& with, const std::string& breaker,
                                             const call_rules& rules) {
    const std::string scheme = detail::scheme_of(with.breakers_url);
    if (scheme == "local" || scheme == "memory" || with.mirror_url == "none") return std::nullopt;
    const mirror_names names = mirror_names_of(with.breakers_url, with.name_space);
    store stand_in = open_local(with, names.stand_in);
    if (!stand_in || !stand_in.has_breakers()) return std::nullopt;
    return call_mirror(breaker, rules, std::move(stand_in), open_local(with, names.memory));
}

std::optional<detail::report> call_mirror::read(const store& from) const {
    auto page = ask_breakers<detail::page>(
        from, options_.store_timeout, [&](detail::breaker_store& at, auto by, auto done) {
            return at.inspect(breaker_, "", 1, by, std::move(done));
        });
    // The first of those that begin with the name is this breaker, if there is one.
    if (page.error || page.value.rows.empty()) return std::nullopt;
    if (page.value.rows.front().breaker != breaker_) return std::nullopt;
    return std::move(page.value.rows.front());
}

std::optional<call_mirror::told> call_mirror::last_heard() const {
    if (!memory_) return std::nullopt;
    auto memory = read(memory_);
    if (!memory) return std::nullopt;
    auto beside = read(stand_in_);
    return told{std::move(memory->now.fleet), beside ? std::move(beside->options) : std::string()};
}

void call_mirror::keep(const call_breaker& call, outcome what) {
    breaker_options governing = options_;
    if (!call.governing().empty()) {
        governing = options_of_text(call.governing());
        governing.store_timeout = patience;
    }
    call_breaker here(stand_in_, breaker_, governing, true);
    here.mirror(call.fleet_now(), what, call.admitted_as());
    if (memory_) call_breaker(memory_, breaker_, governing, true).copy(call.fleet_now());
}

}  // namespace trinco::program
