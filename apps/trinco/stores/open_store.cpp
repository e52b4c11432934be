#include "apps/trinco/stores/open_store.hpp"

#include <vector>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/store_password.hpp"
#include "apps/trinco/stores/sudo_warning.hpp"
#include "core/quoted.hpp"
#include "store/driver.hpp"
#include "store/open.hpp"
#include "store/shown_url.hpp"
#include "trinco/memory.hpp"
#if TRINCO_LOCAL
#include "store/local/local_driver.hpp"
#include "trinco/local.hpp"
#endif

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

std::string_view kept(needs what) {
    return what == needs::locks ? "locks" : "circuit breakers";
}

problem keeps_none(const store& opened, needs what) {
    const std::string setting = what == needs::locks ? "--locks" : "--breakers";
    return {exit_usage, "the store " + std::string(opened.url()) + " keeps no " +
                            std::string(kept(what)) + "; name another one with " + setting +
                            " ('trinco help urls' lists which keep what)"};
}

// "TRINCO_LOCKS: ", or nothing when nobody said it.
std::string said_by(const settings& with, needs what) {
    const std::string_view key = what == needs::locks ? "locks.store" : "breakers.store";
    for (const setting& one : with.all) {
        if (one.key == key && one.source != "default") return one.source + ": ";
    }
    return {};
}

// Of a store that did not open. What there is a driver for, and what the machine does not let it
// use (a network file system, another machine's file), is no mistake of whoever typed the URL.
int opening_code(const std::error_code& error, std::string_view url) {
    if (error != errc::not_supported) return exit_code_of(error);
    const std::string scheme = detail::scheme_of(url);
    for (const driver& one : all_drivers()) {
        for (const std::string_view known : detail::store_access::driver_of(one)->schemes()) {
            if (known == scheme) return exit_unavailable;
        }
    }
    return exit_usage;
}

bool is_memory(std::string_view url) {
    return url == "memory" || url.starts_with("memory:");
}

// What to do about an error, where there is something to do. Begins with "; ".
std::string_view next_step(const std::error_code& error, std::string_view url) {
    const bool is_server = !url.starts_with("local");
    if (error == errc::unavailable) {
        return is_server ? "; 'trinco doctor' says why"
                         : "; is its place there, writable and undamaged?";
    }
    if (error == errc::denied) {
        return is_server ? "; 'trinco doctor' says what is missing"
                         : "; which user may use it, and is this one of them?";
    }
    if (error == errc::unknown_outcome) return "; look what holds now before doing it again";
    return "";
}

std::vector<driver> with_the_others(std::vector<driver> own) {
    for (const server_store& one : server_stores()) own.push_back(one.how);
    own.push_back(drivers::memory());
    return own;
}

// Who opens a store of locks mostly takes one.
std::span<const driver> drivers_for(needs what) {
#if TRINCO_LOCAL
    static const auto for_locks = with_the_others({detail::local_for_locks()});
    if (what == needs::locks) return for_locks;
#endif
    return all_drivers();
}

using opener = store (*)(std::string_view, std::span<const driver>, const store_settings&);

std::variant<store, problem> open_by(opener open, const settings& with, needs what,
                                     std::string_view instance) {
    for (const std::string& warning : with.warnings) say(warning);
    store_settings how;
    how.name_space = with.name_space;
    how.instance = instance;
    // The setting "instance" names the failure domain, as TRINCO_INSTANCE does for the library.
    how.voter = with.instance;
    // Breakers alone have voters, and finding out one's own takes reading four files.
    if (what == needs::locks && how.voter.empty()) how.voter = "locks";
    const std::string& url = what == needs::locks ? with.locks_url : with.breakers_url;
    if (is_memory(url)) {
        return problem{exit_usage,
                       said_by(with, what) + "the store " + detail::quoted(url, 100) +
                           " is gone with this process and shared with nobody; use local:, which "
                           "all processes of this machine share"};
    }
    if (const auto warning = sudo_warning(url)) say(*warning);
    const auto full =
        what == needs::locks ? std::variant<std::string, problem>(url) : with_password(with);
    if (const auto* const missing = std::get_if<problem>(&full)) return *missing;
    store opened;
    try {
        opened = open(std::get<std::string>(full), drivers_for(what), how);
    } catch (const std::system_error& e) {  // open_error, or what the system refused
        return problem{opening_code(e.code(), url), said_by(with, what) + e.what()};
    }
    const bool keeps = what == needs::locks ? opened.has_locks() : opened.has_breakers();
    if (!keeps) return keeps_none(opened, what);
    return opened;
}

}  // namespace

std::span<const driver> all_drivers() {
#if TRINCO_LOCAL
    static const auto all = with_the_others({drivers::local()});
#else
    static const auto all = with_the_others({});
#endif
    return all;
}

std::variant<store, problem> open_store(const settings& with, needs what,
                                        std::string_view instance) {
    return open_by(&trinco::open, with, what, instance);
}

std::variant<store, problem> open_store_for_a_moment(const settings& with) {
    const bool is_here = detail::scheme_of(with.locks_url) == "local";
    const opener open = is_here ? &detail::open_without_thread : static_cast<opener>(&trinco::open);
    return open_by(open, with, needs::locks, {});
}

std::error_code after_attempts(bool in_doubt, const std::error_code& last) {
    const bool is_not_applied = kind_of(last) == error_kind::not_applied;
    return in_doubt && is_not_applied ? make_error_code(errc::unknown_outcome) : last;
}

std::string locks_trouble(const store& s, const std::error_code& error) {
    const auto state = detail::store_access::state(s);
    if (!state || state->locks() == nullptr) return {};
    // Shared, because the loop may come to it when nobody waits any more.
    const auto said = std::make_shared<std::string>();
    const auto failed = detail::run_and_wait(
        state->on(), 1s, [said, error, of = state->locks()] { *said = of->trouble(error); });
    return failed ? std::string() : *said;
}

std::string locks_reason(const store& s, const std::error_code& error) {
    auto trouble = locks_trouble(s, error);
    return trouble.empty() ? error.message() : trouble;
}

problem store_problem(const store& s, std::string_view what, const std::error_code& error) {
    const auto trouble = locks_trouble(s, error);
    const auto reason =
        trouble.empty() ? error.message() + std::string(next_step(error, s.url())) : trouble;
    return {exit_code_of(error),
            "the store " + std::string(s.url()) + " could not " + std::string(what) + ": " + reason,
            error};
}

}  // namespace trinco::program
