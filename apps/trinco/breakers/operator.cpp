#include "apps/trinco/breakers/operator.hpp"

#include <pwd.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/visible.hpp"
#include "apps/trinco/stores/breaker_trouble.hpp"
#include "apps/trinco/stores/hurried_ask.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/loop.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::control_request;
using trinco::detail::view;

constexpr auto patience = 5s;
constexpr auto bear = 300ms;  // a server that restarts is back by then, or is to be named
constexpr int most_attempts = 2;

std::string user_name() {
    const char* const behind_sudo = ::geteuid() == 0 ? std::getenv("SUDO_USER") : nullptr;
    if (behind_sudo != nullptr && *behind_sudo != '\0') return behind_sudo;
    const ::passwd* const entry = ::getpwuid(::getuid());
    if (entry != nullptr && entry->pw_name != nullptr) return entry->pw_name;
    return "uid " + std::to_string(::getuid());
}

std::uint64_t random_id() {
    std::uint64_t id = 0;
    // Never fails for so few bytes once the machine has begun; should it, the clock is as good.
    if (::getentropy(&id, sizeof id) != 0) {
        const auto now = detail::boot_clock::now().time_since_epoch();
        id = static_cast<std::uint64_t>(now.count());
    }
    return id | 1U;
}

}  // namespace

std::string who_operates() {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown-host"};
    std::string who = user_name() + "@" + host.data();
    who.resize(std::min(who.size(), detail::max_who));
    return detail::is_one_line(who) ? who : "unknown";
}

std::optional<problem> check_reason(std::string_view reason) {
    if (reason.size() > detail::max_reason) {
        return problem{exit_usage, "the reason has " + std::to_string(reason.size()) +
                                       " bytes; at most " + std::to_string(detail::max_reason) +
                                       " are allowed"};
    }
    if (!detail::is_one_line(reason)) {
        return problem{exit_usage, "the reason " + detail::quoted(reason) +
                                       " has control characters; it is shown in logs and "
                                       "terminals, so it must be one plain line"};
    }
    if (!is_utf8(reason)) {
        return problem{exit_usage, "the reason " + detail::quoted(reason) +
                                       " is not UTF-8, the only encoding in which it can be shown "
                                       "to others; is that what this terminal sends?"};
    }
    return std::nullopt;
}

std::variant<view, problem> operate(const breakers_place& in, control_request what,
                                    std::string_view action) {
    what.id = random_id();
    what.who = who_operates();
    bool in_doubt = false;
    for (int attempt = 1;; ++attempt) {
        auto reply = ask_breakers_hurried<view>(in.at, patience, bear,
                                                [&](detail::breaker_store& on, auto by, auto done) {
                                                    return on.control(what, by, std::move(done));
                                                });
        if (!reply.error) return std::move(reply.value);
        // The same id is carried out once, so what may have happened can be asked for again.
        const bool may_have_happened = kind_of(reply.error) == error_kind::unknown;
        if (!may_have_happened || attempt == most_attempts) {
            return not_done(in, action, asked::to_change, after_attempts(in_doubt, reply.error));
        }
        in_doubt = true;
    }
}

}  // namespace trinco::program
