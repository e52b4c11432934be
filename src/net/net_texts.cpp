// What addresses and errors of streams look like to people.
#include <string>
#include <system_error>

#include "net/stream_factory.hpp"

namespace trinco::detail {
namespace {

class net_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "trinco-net"; }
    std::string message(int value) const override {
        switch (static_cast<net_errc>(value)) {
            case net_errc::no_such_host: return "there is no host of this name";
            case net_errc::names_unavailable: return "the host's name cannot be looked up now";
        }
        return "an unknown error of the network";
    }
};

}  // namespace

const std::error_category& net_category() noexcept {
    static const net_errors instance;
    return instance;
}

std::error_code make_error_code(net_errc e) noexcept {
    return {static_cast<int>(e), net_category()};
}

std::string text_of(const stream_address& address) {
    if (address.kind == stream_address::kind_t::local) return "unix:" + address.path;
    const bool has_colons = address.host.find(':') != std::string::npos;
    return (has_colons ? "[" + address.host + "]" : address.host) + ":" +
           std::to_string(address.port);
}

std::string connect_sentence(const stream_address& to, const std::error_code& why) {
    std::string reason = why.message();
    if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z') {
        reason[0] = static_cast<char>(reason[0] - 'A' + 'a');
    }
    return "cannot connect to " + text_of(to) + ": " + reason;
}

}  // namespace trinco::detail
