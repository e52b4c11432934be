#include "store/redis/cluster_map.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace trinco::detail {
namespace {

constexpr std::size_t most_nodes = 2'000;
constexpr std::size_t longest_host = 255;

using kind = resp_reply::kind_t;

[[nodiscard]] bool is_slot(const resp_reply& r) {
    return r.is(kind::integer) && r.integer >= 0 && r.integer < redis_slots;
}

// What a node adds to its address: names and values in turn.
[[nodiscard]] std::string detail_of(const resp_reply& node, std::string_view name) {
    if (node.elements.size() < 4) return {};
    const auto& all = node.elements[3].elements;
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
        if (all[i].text == name) return all[i + 1].text;
    }
    return {};
}

[[nodiscard]] std::optional<stream_address> address_of(std::string host, std::int64_t port,
                                                       const stream_address& asked) {
    if (port <= 0 || port > 0xffff || host.size() > longest_host) return {};
    auto to = asked;
    if (!host.empty()) to.host = std::move(host);
    to.port = static_cast<std::uint16_t>(port);
    return to;
}

// host, port, id and, since version 7, details.
[[nodiscard]] std::optional<stream_address> node_in(const resp_reply& r,
                                                    const stream_address& asked) {
    if (!r.is(kind::array) || r.elements.size() < 2 || !r.elements[1].is(kind::integer)) return {};
    auto host = r.elements[0].text;
    if (host == "?") host = detail_of(r, "ip");  // it should have a name, and has none
    return address_of(std::move(host), r.elements[1].integer, asked);
}

[[nodiscard]] std::optional<std::int64_t> figures(std::string_view text) {
    std::int64_t n = 0;
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, n);
    if (read.ec != std::errc() || read.ptr != end || text.empty()) return {};
    return n;
}

}  // namespace

std::optional<cluster_map> cluster_map::from(const resp_reply& reply, const stream_address& asked) {
    if (!reply.is(kind::array)) return {};
    cluster_map made;
    for (const auto& range : reply.elements) {
        if (!range.is(kind::array) || range.elements.size() < 3) return {};
        const auto& first = range.elements[0];
        const auto& last = range.elements[1];
        if (!is_slot(first) || !is_slot(last)) return {};
        const auto owner = node_in(range.elements[2], asked);
        if (!owner) continue;
        const auto index = made.index_of(*owner);
        if (!index) return {};
        for (auto slot = first.integer; slot <= last.integer; ++slot) {
            made.owners_[static_cast<std::size_t>(slot)] = *index;
        }
    }
    if (made.nodes_.empty()) return {};
    return made;
}

std::optional<std::uint16_t> cluster_map::index_of(const stream_address& node) {
    const auto found = std::find(nodes_.begin(), nodes_.end(), node);
    if (found == nodes_.end() && nodes_.size() >= most_nodes) return {};
    const auto index = static_cast<std::uint16_t>(found - nodes_.begin());
    if (found == nodes_.end()) nodes_.push_back(node);
    return index;
}

const stream_address* cluster_map::owner(unsigned slot) const noexcept {
    const auto index = owners_[slot];
    return index == nobody ? nullptr : &nodes_[index];
}

void cluster_map::set_owner(unsigned slot, const stream_address& node) {
    if (const auto index = index_of(node)) owners_[slot] = *index;
}

std::optional<redirection> redirection_in(const resp_reply& reply, const stream_address& asked) {
    const auto word = reply.error_word();
    if (word != "MOVED" && word != "ASK") return {};
    auto rest = std::string_view(reply.text);
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const auto blank = rest.find(' ');
    if (blank == std::string_view::npos) return {};
    const auto slot = figures(rest.substr(0, blank));
    rest.remove_prefix(blank + 1);
    // An IPv6 address has colons, too, and sometimes brackets.
    const auto colon = rest.rfind(':');
    if (!slot || *slot < 0 || *slot >= redis_slots || colon == std::string_view::npos) return {};
    auto host = rest.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const auto port = figures(rest.substr(colon + 1));
    if (!port || host == "?") return {};
    const auto to = address_of(std::string(host), *port, asked);
    if (!to) return {};
    return redirection{word == "MOVED", static_cast<unsigned>(*slot), *to};
}

}  // namespace trinco::detail
