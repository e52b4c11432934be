#include "apps/trinco/locks/owner_words.hpp"

#include "apps/trinco/command_line/duration.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

// In front in the handle of every store.
std::string lease_words(const detail::entry& e) {
    return "lease " + e.handle.substr(0, e.handle.find('/'));
}

}  // namespace

std::string owner_name(const detail::entry& e) {
    if (!e.info.empty()) return e.info;
    return e.lease_label.empty() ? lease_words(e) : e.lease_label;
}

std::string owner_words(const detail::entry& e, std::size_t shown) {
    if (!e.info.empty()) return detail::quoted(e.info, shown);
    const auto known = e.lease_label.empty() ? "" : detail::quoted(e.lease_label, shown) + ", ";
    return "a program that does not say who it is (" + known + lease_words(e) + ")";
}

std::optional<std::chrono::milliseconds> age_of(const detail::entry& e) noexcept {
    if (e.holds) return e.held;
    if (e.since.count() == 0) return std::nullopt;
    return e.since;
}

std::string age_words(const detail::entry& e) {
    const auto age = age_of(e);
    return age ? " for " + duration_words(*age) : "";
}

}  // namespace trinco::program
