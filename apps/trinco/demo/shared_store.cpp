#include "apps/trinco/demo/shared_store.hpp"

#include <sys/random.h>

#include <array>
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

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 3s;

std::string own_namespace() {
    std::uint32_t n = 0;
    if (::getentropy(&n, sizeof n) != 0) {
        n = static_cast<std::uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "trinco-demo-%08x", n);
    return text.data();
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

std::optional<std::string> clear(const shared_store& from) {
    const server_store* const server = server_of(from.url);
    if (server != nullptr && server->clear != nullptr && server->clear(from)) return std::nullopt;
    return "its keys trinco:1:" + from.name_space + ":* are gone by themselves within " +
           duration_words(caller_breaker().key_ttl);
}

}  // namespace trinco::program::demo
