#include "store/open.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/names.hpp"
#include "core/quoted.hpp"
#include "store/identity.hpp"
#include "store/shown_url.hpp"

namespace trinco {
namespace detail {
namespace {

using namespace std::chrono_literals;

constexpr auto open_bound = 5s;      // of the loop's turn in which a driver makes its stores
constexpr auto stop_margin = 100ms;  // beyond the deadline of stop: the turn in which it answers
constexpr auto close_slack = 500ms;  // beyond the close timeout, for a busy machine
constexpr auto close_max = 60s;
constexpr std::size_t url_max = 4'096;
constexpr std::size_t url_shown = 256;

// What this version can open, when its driver is passed.
struct own_scheme {
    std::string_view scheme;
    std::string_view factory;
};
constexpr std::string_view redis_factory = "trinco::drivers::redis() of trinco/redis.hpp";
constexpr std::string_view etcd_factory = "trinco::drivers::etcd() of trinco/etcd.hpp";
constexpr std::string_view consul_factory = "trinco::drivers::consul() of trinco/consul.hpp";
constexpr std::array own_schemes{
    own_scheme{"memory", "trinco::drivers::memory() of trinco/memory.hpp"},
    own_scheme{"local", "trinco::drivers::local() of trinco/local.hpp"},
    own_scheme{"redis", redis_factory},
    own_scheme{"rediss", redis_factory},
    own_scheme{"redis+unix", redis_factory},
    own_scheme{"redis+sentinel", redis_factory},
    own_scheme{"redis+cluster", redis_factory},
    own_scheme{"etcd", etcd_factory},
    own_scheme{"etcds", etcd_factory},
    own_scheme{"consul", consul_factory},
    own_scheme{"consuls", consul_factory},
};
// Stores that one may well expect here, and that it cannot open.
constexpr std::array<std::string_view, 3> later_schemes{"zookeeper", "postgres", "postgresql"};

// Everything that a closing store still needs, owned by its own completions, so that it goes on by
// itself when nobody waits for it.
struct closing : std::enable_shared_from_this<closing> {
    std::shared_ptr<event_loop> on;
    opened_stores stores;
    std::chrono::milliseconds timeout{0};
    op stop_breakers;
    op stop_locks;
    op limit;
    int under_way = 0;

    std::mutex m;
    std::condition_variable over;
    bool done = false;

    void begin();
    void one_stopped();
    void finish();
};

void closing::begin() {
    const auto by = on->now() + timeout;
    // The guard of this function: a store may be there or not, and finish comes once, at the end.
    under_way = 1 + (stores.breakers ? 1 : 0) + (stores.locks ? 1 : 0);
    const auto self = shared_from_this();
    const auto stopped = [self](std::error_code, int) { self->one_stopped(); };
    if (stores.breakers) stop_breakers = stores.breakers->stop(by, stopped);
    if (stores.locks) stop_locks = stores.locks->stop(by, stopped);
    // A store that breaks its promise to answer is destroyed all the same.
    limit = on->at(by + stop_margin, [self] { self->finish(); });
    one_stopped();
}

void closing::one_stopped() {
    if (--under_way > 0) return;
    // In a turn of its own: a store may not be destroyed inside its own completion.
    on->post([self = shared_from_this()] { self->finish(); });
}

void closing::finish() {
    if (!on) return;
    limit.cancel();
    stop_breakers.cancel();
    stop_locks.cancel();
    stores.breakers.reset();
    stores.locks.reset();
    on.reset();  // whoever waits keeps the loop, so that it does not end on its own thread
    const std::lock_guard hold(m);
    done = true;
    over.notify_all();
}

std::string available(std::span<const driver> drivers) {
    std::string list;
    for (const auto& d : drivers) {
        for (const auto scheme : store_access::driver_of(d)->schemes()) {
            if (!list.empty()) list += ", ";
            list += std::string(scheme) + ":";
        }
    }
    return list.empty() ? "none" : list;
}

[[noreturn]] void refuse(errc code, std::string sentence) {
    throw open_error(make_error_code(code), std::move(sentence));
}

store_url parse(std::string_view url, std::span<const driver> drivers) {
    const auto here = "this program has drivers for: " + available(drivers);
    if (url.empty()) refuse(errc::invalid, "the store's URL is empty; " + here);
    if (url.size() > url_max) {
        refuse(errc::invalid, "the store's URL has " + std::to_string(url.size()) +
                                  " bytes; at most " + std::to_string(url_max) + " are allowed");
    }
    const auto shown = shown_url(url);
    const auto scheme = scheme_of(url);
    if (scheme.empty()) {
        refuse(errc::invalid, "the store's URL " + detail::quoted(shown, url_shown) +
                                  " does not begin with a scheme and a colon, as memory: does; " +
                                  here);
    }
    return {scheme, std::string(url.substr(scheme.size() + 1)), shown};
}

// How many letters must be added, removed or replaced to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

// The scheme that was probably meant, of those that were passed and those of this version.
std::string nearest(std::string_view scheme, std::span<const driver> drivers) {
    std::vector<std::string_view> known;
    for (const auto& d : drivers) {
        const auto schemes = store_access::driver_of(d)->schemes();
        known.insert(known.end(), schemes.begin(), schemes.end());
    }
    for (const auto& own : own_schemes) known.push_back(own.scheme);
    std::string_view best;
    std::size_t least = 3;  // more mistakes than two are another word
    for (const auto k : known) {
        const bool begun = scheme.size() >= 2 && k.starts_with(scheme);
        const auto d = begun ? 1 : distance(scheme.substr(0, 64), k);
        if (d >= least || (d > 1 && scheme[0] != k[0])) continue;
        least = d;
        best = k;
    }
    return std::string(best);
}

// What to do about a scheme that none of the drivers knows.
std::string advice(const store_url& url, std::span<const driver> drivers) {
    for (const auto& own : own_schemes) {
        if (own.scheme != url.scheme) continue;
        return "pass " + std::string(own.factory) + " to trinco::open";
    }
    const auto base = url.scheme.substr(0, url.scheme.find('+'));
    if (std::find(later_schemes.begin(), later_schemes.end(), base) != later_schemes.end()) {
        return "stores of " + url.scheme + ": are not in this version of Trinco";
    }
    if (base == "valkey" || base == "valkeys") {
        return "Valkey is opened as Redis is: begin the URL with redis: or rediss:";
    }
    if (const auto meant = nearest(url.scheme, drivers); !meant.empty()) {
        return "did you mean " + meant + ":?";
    }
    const auto passed = available(drivers);
    const bool has_all = std::all_of(own_schemes.begin(), own_schemes.end(), [&](const auto& own) {
        return passed.find(std::string(own.scheme) + ":") != std::string::npos;
    });
    return has_all ? ""
                   : "Trinco itself has drivers for memory:, local:, redis:, etcd: and consul:";
}

std::shared_ptr<store_driver> driver_for(const store_url& url, std::span<const driver> drivers) {
    std::shared_ptr<store_driver> found;
    for (const auto& d : drivers) {
        auto candidate = store_access::driver_of(d);
        const auto schemes = candidate->schemes();
        if (std::find(schemes.begin(), schemes.end(), url.scheme) == schemes.end()) continue;
        if (found != nullptr && found != candidate) {
            refuse(errc::invalid, "two drivers for " + url.scheme +
                                      ": were passed to trinco::open; pass one of them");
        }
        found = candidate;
    }
    if (found == nullptr) {
        const auto next = advice(url, drivers);
        refuse(errc::not_supported, "there is no driver for the store " +
                                        detail::quoted(url.shown, url_shown) +
                                        "; this program has drivers for: " + available(drivers) +
                                        (next.empty() ? "" : "; ") + next);
    }
    return found;
}

// Each of the checks of core/names.hpp answers with a sentence.
void must_pass(const std::optional<std::string>& complaint, const char* source = "") {
    if (complaint) refuse(errc::invalid, source + *complaint);
}

breaker_identity identify(const store_settings& settings) {
    breaker_identity who{settings.instance, settings.voter};
    if (who.instance.empty()) who.instance = make_instance_name();
    must_pass(check_instance(who.instance));
    const char* const given = std::getenv("TRINCO_INSTANCE");
    if (!who.voter.empty()) {
        must_pass(check_voter(who.voter));
    } else if (given != nullptr && *given != '\0') {
        who.voter = given;
        must_pass(check_voter(who.voter), "the environment variable TRINCO_INSTANCE: ");
    } else {
        who.voter = find_voter();
    }
    return who;
}

store_state::parts make(std::string_view text, std::span<const driver> drivers,
                        const store_settings& settings, bool has_thread) {
    for (const auto& d : drivers) {
        if (store_access::driver_of(d) != nullptr) continue;
        refuse(errc::invalid,
               "a driver that was passed to trinco::open is empty: it was moved from, or made of a "
               "null pointer; pass a copy, as trinco::drivers::memory() makes it");
    }
    const auto url = parse(text, drivers);
    const auto with = driver_for(url, drivers);
    if (settings.close_timeout < 0ms || settings.close_timeout > close_max) {
        refuse(errc::invalid, "close_timeout is " + std::to_string(settings.close_timeout.count()) +
                                  " ms; allowed is 0 to 60 s");
    }
    store_state::parts parts;
    must_pass(check_namespace(settings.name_space));
    parts.name_space = settings.name_space;
    parts.who = identify(settings);
    parts.url = url.shown;
    parts.close_timeout = settings.close_timeout;
    parts.on = std::make_shared<event_loop>();
    if (has_thread) parts.on->start();
    // What the turn below writes lives as long as it may run.
    struct result {
        opened_stores stores;
        std::error_code error;
        std::string sentence;
    };
    auto opened = std::make_shared<result>();
    const auto error = run_and_wait(
        *parts.on, open_bound,
        [opened, with, url, on = parts.on, space = parts.name_space, who = parts.who] {
            try {
                opened->stores = with->open(url, *on, space, who);
            } catch (const open_error& e) {
                opened->error = e.code();
                opened->sentence = e.what();
            } catch (const std::exception& e) {
                opened->error = errc::unavailable;
                opened->sentence = "the store " + detail::quoted(url.shown, url_shown) +
                                   " was not opened: " + e.what();
            }
        });
    if (error) {
        // Stores that come to be after all end where they began.
        parts.on->post([opened = std::move(opened)] { opened->stores = {}; });
        throw open_error(error, "the store " + detail::quoted(url.shown, url_shown) +
                                    " was not opened: " + error.message());
    }
    if (opened->error) throw open_error(opened->error, opened->sentence);
    parts.stores = std::move(opened->stores);
    return parts;
}

}  // namespace

store_state::~store_state() {
    if (check() == errc::forked) {
        // Its descriptors are the parent's as well, and its memory may be in the middle of a
        // change.
        static_cast<void>(parts_.stores.breakers.release());
        static_cast<void>(parts_.stores.locks.release());
        return;
    }
    const auto job = std::make_shared<closing>();
    job->on = parts_.on;
    job->stores = std::move(parts_.stores);
    job->timeout = parts_.close_timeout;
    if (parts_.on->on_thread()) {
        job->begin();
        return;
    }
    parts_.on->post([job] { job->begin(); });
    std::unique_lock hold(job->m);
    job->over.wait_for(hold, parts_.close_timeout + close_slack, [&] { return job->done; });
}

}  // namespace detail

store detail::open_without_thread(std::string_view url, std::span<const driver> drivers,
                                  const store_settings& settings) {
    return store_access::wrap(std::make_shared<store_state>(make(url, drivers, settings, false)));
}

driver::driver(std::shared_ptr<detail::store_driver> what) noexcept : what_(std::move(what)) {}

open_error::open_error(std::error_code code, std::string sentence)
    : std::system_error(code), sentence_(std::move(sentence)) {}

store::store() noexcept = default;
store::store(std::shared_ptr<detail::store_state> state) noexcept : state_(std::move(state)) {}
store::store(store&& other) noexcept = default;
store& store::operator=(store&& other) noexcept = default;
store::~store() = default;

bool store::has_breakers() const noexcept {
    return state_ != nullptr && state_->breakers() != nullptr;
}
bool store::has_locks() const noexcept {
    return state_ != nullptr && state_->locks() != nullptr;
}

std::string_view store::url() const noexcept {
    return state_ ? std::string_view(state_->url()) : std::string_view();
}
std::string_view store::name_space() const noexcept {
    return state_ ? std::string_view(state_->name_space()) : std::string_view();
}
std::string_view store::instance() const noexcept {
    return state_ ? std::string_view(state_->who().instance) : std::string_view();
}
std::string_view store::voter() const noexcept {
    return state_ ? std::string_view(state_->who().voter) : std::string_view();
}

void store::close() noexcept {
    state_.reset();
}

store open(std::string_view url, std::span<const driver> drivers, const store_settings& settings) {
    return detail::store_access::wrap(
        std::make_shared<detail::store_state>(detail::make(url, drivers, settings, true)));
}

store open(std::string_view url, std::span<const driver> drivers, const store_settings& settings,
           std::error_code& error, std::string* why) {
    error.clear();
    try {
        return open(url, drivers, settings);
    } catch (const std::system_error& e) {  // open_error, or what the system refused
        error = e.code();
        if (why != nullptr) *why = e.what();
    }
    return {};
}

}  // namespace trinco
