#include "trinco/lock_all.hpp"

#include "lock/make_shell.hpp"

namespace trinco {
namespace {

constexpr std::size_t most_names = 32;

template <class Names>
std::vector<detail::part> parts_of(const Names& names) {
    if (names.size() == 0 || names.size() > most_names) {
        throw lock_error(errc::invalid, "lock_all was given " + std::to_string(names.size()) +
                                            " names; 1 to 32 are allowed");
    }
    std::vector<detail::part> parts;
    for (const auto& name : names) {
        parts.push_back({std::string(name), detail::claim_kind::exclusive, 0});
    }
    return parts;
}

}  // namespace

lock_all::lock_all(session& on, std::span<const std::string> names, std::string_view info)
    : lock_handle(detail::make_shell(on, "lock_all", parts_of(names), info)) {}

lock_all::lock_all(session& on, std::initializer_list<std::string_view> names,
                   std::string_view info)
    : lock_handle(detail::make_shell(on, "lock_all", parts_of(names), info)) {}

void lock_all::unlock() noexcept {
    std::error_code ignored;
    unlock(ignored);
}

std::uint64_t lock_all::fencing_token(std::string_view name) const {
    for (std::size_t i = 0; i < parts(); ++i) {
        if (name_of(i) == name) return token_of(i);
    }
    return 0;
}

std::vector<std::string> lock_all::names() const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < parts(); ++i) all.push_back(name_of(i));
    return all;
}

}  // namespace trinco
