#include "lock/make_shell.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/names.hpp"
#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t longest_info = 4'096;

}  // namespace

std::shared_ptr<lock_shell> make_shell(session& on, const char* kind, std::vector<part> parts,
                                       std::string_view info, bool bare) {
    auto of = lock_access::shell(on);
    if (!of) {
        const auto why = on.why();
        throw lock_error(errc::invalid,
                         "a " + std::string(kind) + " needs a session; this one was " +
                             (why == errc::lost ? "moved from" : "not opened: " + why.message()));
    }
    for (const auto& p : parts) {
        if (const auto bad = check_lock_name(p.name)) throw lock_error(errc::invalid, *bad);
    }
    std::sort(parts.begin(), parts.end(),
              [](const part& a, const part& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(
        parts.begin(), parts.end(), [](const part& a, const part& b) { return a.name == b.name; });
    if (twice != parts.end()) {
        throw lock_error(errc::invalid, "the name " + detail::quoted(twice->name) +
                                            " is given twice; each lock can be taken once");
    }
    if (info.size() > longest_info) {
        throw lock_error(errc::invalid,
                         "the info of " + std::string(kind) + " '" + parts.front().name + "' has " +
                             std::to_string(info.size()) + " bytes; at most 4096 are allowed");
    }
    return std::make_shared<lock_shell>(std::move(of), std::move(parts), std::string(info), kind,
                                        bare);
}

}  // namespace trinco::detail
