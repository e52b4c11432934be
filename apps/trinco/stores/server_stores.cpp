#include "apps/trinco/stores/server_stores.hpp"

#include <algorithm>
#include <utility>

#include "store/open.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

std::vector<server_store>& offered() {
    static std::vector<server_store> all;
    return all;
}

}  // namespace

void offer_servers(std::vector<server_store> all) {
    offered() = std::move(all);
}

std::span<const server_store> server_stores() {
    return offered();
}

const server_store* server_of(std::string_view url) {
    const std::string scheme = detail::scheme_of(url);
    for (const server_store& one : offered()) {
        const auto schemes = detail::store_access::driver_of(one.how)->schemes();
        if (std::find(schemes.begin(), schemes.end(), scheme) != schemes.end()) return &one;
    }
    return nullptr;
}

std::optional<std::string> check_lock_name_at(std::string_view url, std::string_view name,
                                              bool is_beginning) {
    const server_store* const server = server_of(url);
    if (server == nullptr || server->check_lock_name == nullptr) return std::nullopt;
    return server->check_lock_name(name, is_beginning);
}

}  // namespace trinco::program
