#include "apps/trinco/config/lock_ttl.hpp"

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "core/lock/lease.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::lease_timing;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds shortest = lease_timing::shortest_ttl;
constexpr milliseconds longest = lease_timing::longest_ttl;

// Stores count leases in seconds.
std::variant<seconds, std::string> in_seconds(milliseconds ttl) {
    if (ttl % 1s == 0ms) return std::chrono::duration_cast<seconds>(ttl);
    return std::to_string(ttl.count()) + " ms; it is whole seconds, such as 2s";
}

}  // namespace

void declare_ttl(arguments& to, std::optional<milliseconds>& ttl, std::string_view help) {
    to.optional_duration("--ttl", ttl, {shortest, longest},
                         std::string(help) + "; default locks.ttl of trinco.toml, or else " +
                             duration_option(lease_timing::default_ttl));
}

std::variant<seconds, problem> ttl_of(const std::optional<milliseconds>& option,
                                      const settings& with) {
    if (!option) return with.ttl;
    auto whole = in_seconds(*option);
    if (const auto* const bad = std::get_if<std::string>(&whole)) {
        return problem{exit_usage, "--ttl is " + *bad};
    }
    return std::get<seconds>(whole);
}

std::variant<seconds, std::string> parse_ttl(std::string_view text) {
    const std::string prefix = "the TTL of locks is ";
    const auto read = parse_duration(text);
    if (const auto* const wrong = std::get_if<std::string>(&read)) return *wrong;
    const auto ttl = std::get<milliseconds>(read);
    if (ttl < shortest || ttl > longest) {
        return prefix + detail::quoted(text) + ", outside of " + duration_option(shortest) +
               " to " + duration_option(longest);
    }
    auto whole = in_seconds(ttl);
    if (const auto* const bad = std::get_if<std::string>(&whole)) return prefix + *bad;
    return std::get<seconds>(whole);
}

}  // namespace trinco::program
