#include "store/consul/consul_messages.hpp"

#include <algorithm>

namespace trinco::detail::consul {

bool txn_request::reads_only() const noexcept {
    using verb_t = operation::verb_t;
    return std::all_of(operations.begin(), operations.end(), [](const operation& one) {
        switch (one.verb) {
            case verb_t::get:
            case verb_t::get_tree:
            case verb_t::check_index:
            case verb_t::check_session:
            case verb_t::check_not_exists: return true;
            default: return false;
        }
    });
}

bool is_session_id(std::string_view text) noexcept {
    constexpr std::size_t size = 36;
    return text.size() == size &&
           text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

}  // namespace trinco::detail::consul
