#include "store/etcd/etcd_messages.hpp"

#include <algorithm>

namespace trinco::detail::etcd {

key_range all_under(std::string_view prefix) {
    key_range out{std::string(prefix), std::string(prefix)};
    // The first key behind all of them: the last byte that can grow does.
    while (!out.end.empty() && out.end.back() == '\xff') out.end.pop_back();
    if (out.end.empty()) {
        out.end.push_back('\0');  // all keys from `begin` on, in etcd's words
    } else {
        out.end.back() = static_cast<char>(static_cast<unsigned char>(out.end.back()) + 1);
    }
    return out;
}

bool txn_request::reads_only() const noexcept {
    const auto reads = [](const operation& one) {
        return std::holds_alternative<range_request>(one);
    };
    return std::all_of(success.begin(), success.end(), reads) &&
           std::all_of(failure.begin(), failure.end(), reads);
}

}  // namespace trinco::detail::etcd
