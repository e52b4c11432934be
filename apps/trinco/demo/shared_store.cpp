#include "apps/trinco/demo/shared_store.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/demo/gateway_caller.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/breaker_trouble.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/store_password.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"
#include "trinco/error.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 3s;

std::uint32_t any_number() {
    std::uint32_t n = 0;
    if (::getentropy(&n, sizeof n) != 0) {
        n = static_cast<std::uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    }
    return n;
}

std::string own_namespace() {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "trinco-demo-%08x", any_number());
    return text.data();
}

bool is_etcd(std::string_view url) {
    return detail::scheme_of(url).starts_with("etcd");
}

bool is_consul(std::string_view url) {
    return detail::scheme_of(url).starts_with("consul");
}

// Whether the server is there, lets us in, and takes what locks write under that prefix.
std::optional<problem> try_out_locks(const settings& with) {
    const auto opened = open_store(with, needs::locks);
    if (const auto* const why = std::get_if<problem>(&opened)) return *why;
    const store& at = std::get<store>(opened);
    const std::array<detail::change, 1> trial{detail::change{"trial", "of trinco demo"}};
    const auto tried = ask_locks<std::uint64_t>(
        at, patience, [&](detail::lock_store& locks, detail::deadline by, auto done) {
            return locks.write("", std::nullopt, trial, 1min, by, std::move(done));
        });
    if (tried.error) return store_problem(at, "play the demonstration", tried.error);
    return std::nullopt;
}

// Whether the server is there, lets us in, and takes what breakers write.
std::optional<problem> try_out(const settings& with, const std::string& words) {
    const auto opened = open_store(with, needs::breakers);
    if (const auto* const why = std::get_if<problem>(&opened)) return *why;
    const store& at = std::get<store>(opened);
    detail::control_request what;
    what.breaker = tried_breaker;
    what.who = "trinco-demo";
    what.verb = detail::control_verb::reset;
    // Twice: a server without memory lets a record be made that it does not let be changed.
    for (what.id = 1; what.id <= 2; ++what.id) {
        const auto tried = ask_breakers<detail::view>(
            at, patience,
            [&](auto& on, auto by, auto done) { return on.control(what, by, std::move(done)); });
        if (tried.error) {
            return breaker_problem(at, "play the demonstration", asked::to_read, tried.error,
                                   words);
        }
    }
    return std::nullopt;
}

}  // namespace

std::variant<shared_store, problem> find_shared_store(settings with) {
    if (!is_redis(with.breakers_url)) {
        return problem{exit_usage,
                       "the demonstration brings its own store of this machine, and --breakers is "
                       "for a server, as in redis://127.0.0.1:6379; it is " +
                           detail::quoted(detail::shown_url(with.breakers_url), 100)};
    }
    const std::string words = store_words(with);
    with.name_space = own_namespace();
    auto url = with_password(with);
    if (auto* const why = std::get_if<problem>(&url)) return std::move(*why);
    if (auto why = try_out(with, words)) return std::move(*why);
    return shared_store{std::move(std::get<std::string>(url)), detail::shown_url(with.breakers_url),
                        with.name_space};
}

std::variant<shared_store, problem> find_shared_locks(const settings& with) {
    const std::string shown = detail::shown_url(with.locks_url);
    if (is_consul(with.locks_url)) {
        return problem{
            exit_usage,
            "the demonstration plays its acts about locks on this machine's own store "
            "or on etcd, and none of them on Consul; leave --locks out, or name an etcd"};
    }
    if (!is_etcd(with.locks_url)) {
        return problem{exit_usage,
                       "the demonstration brings its own store of this machine, and --locks is for "
                       "a server, as in etcd://127.0.0.1:2379; it is " +
                           detail::quoted(shown, 100)};
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::string own =
        with.prefix +
        prefix_of_demo(std::chrono::duration_cast<std::chrono::seconds>(now).count(), any_number());
    settings in = with;
    in.locks_url = with_prefix(with.locks_url, own);
    in.prefix.clear();
    shared_store found{in.locks_url, shown, own};
    if (auto why = try_out_locks(in)) {
        // Its answer may have been lost alone.
        if (why->error == errc::unknown_outcome) static_cast<void>(clear(found));
        return std::move(*why);
    }
    return found;
}

std::string with_prefix(const std::string& url, std::string_view more) {
    constexpr std::string_view key = "prefix=";
    const std::size_t options = url.find('?');
    if (options == std::string::npos) return url + "?" + std::string(key) + std::string(more);
    std::size_t at = options + 1;
    while (at < url.size() && url.compare(at, key.size(), key) != 0) {
        at = std::min(url.find('&', at), url.size() - 1) + 1;
    }
    if (at >= url.size()) return url + "&" + std::string(key) + std::string(more);
    const std::size_t end = std::min(url.find('&', at), url.size());
    const bool has_slash = url[end - 1] == '/';
    return url.substr(0, end) + (has_slash ? "" : "/") + std::string(more) + url.substr(end);
}

std::string prefix_of_demo(std::int64_t now, std::uint32_t number) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%s%lld-%08x", own_prefix.data(),
                  static_cast<long long>(now), number);
    return text.data();
}

std::optional<std::int64_t> time_in_prefix(std::string_view name) {
    if (!name.starts_with(own_prefix)) return std::nullopt;
    name.remove_prefix(own_prefix.size());
    std::int64_t time = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), time);
    const bool sound = error == std::errc() && end != name.data() + name.size() && *end == '-';
    return sound ? std::optional(time) : std::nullopt;
}

std::optional<std::string> clear(const shared_store& from) {
    const server_store* const server = server_of(from.url);
    if (server != nullptr && server->clear != nullptr && server->clear(from)) return std::nullopt;
    if (is_etcd(from.url)) {
        return "keys under " + from.name_space + "/ may be left in " + from.shown +
               "; 'etcdctl del --prefix' removes them, and so does the next demo after an hour";
    }
    return "its keys trinco:1:" + from.name_space + ":* are gone by themselves within " +
           duration_words(caller_breaker().key_ttl);
}

}  // namespace trinco::program::demo
