#include "store/etcd/etcd_fault.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/quoted.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr std::size_t text_shown = 300;

bool has(std::string_view text, std::string_view words) {
    return text.find(words) != std::string_view::npos;
}

// gRPC tells by its words alone that nothing was sent.
bool was_not_sent(std::string_view text) {
    return has(text, "failed to connect to all addresses") || has(text, "DNS resolution failed") ||
           has(text, "connections to all backends failing");
}

// Of an attempt to connect: what will not change by trying again.
bool is_hopeless(std::string_view text, fault& out) {
    struct sign {
        std::string_view words;
        errc code;
        std::string_view meaning;
    };
    static constexpr std::array<sign, 8> signs{
        sign{"Hostname Verification Check failed", errc::invalid,
             "its certificate is for another name; name it by server_name="},
        sign{"is not in peer certificate", errc::invalid,
             "its certificate is for another name; name it by server_name="},
        sign{"CERTIFICATE_VERIFY_FAILED", errc::denied,
             "its certificate is not of an authority that is believed; name it by ca="},
        sign{"certificate verify failed", errc::denied,
             "its certificate is not of an authority that is believed; name it by ca="},
        sign{"WRONG_VERSION_NUMBER", errc::invalid, "it speaks no TLS; use etcd://"},
        sign{"wrong version number", errc::invalid, "it speaks no TLS; use etcd://"},
        sign{"HTTP_1_1_REQUIRED", errc::invalid, "it speaks HTTP, and not gRPC: it is no etcd"},
        sign{"Trying to connect an http1.x server", errc::invalid,
             "it speaks HTTP/1, and not gRPC: it is no etcd"},
    };
    const auto* const found =
        std::find_if(signs.begin(), signs.end(), [&](const sign& s) { return has(text, s.words); });
    if (found == signs.end()) return false;
    out.code = found->code;
    out.sentence += found->meaning;
    out.hopeless = true;
    out.leave = true;
    return true;
}

// What gRPC says of a connection that was not made, in other words; empty: as it says it.
std::string_view plain_words(std::string_view text) {
    struct sign {
        std::string_view words;
        std::string_view meaning;
    };
    static constexpr std::array<sign, 8> signs{
        sign{"Connection refused", "connection refused; is etcd running there?"},
        sign{"DNS resolution failed", "its name has no address"},
        sign{"No route to host", "no way leads there (no route to host)"},
        sign{"Network is unreachable", "no way leads there (network is unreachable)"},
        sign{"before receiving SETTINGS frame", "it takes connections, but does not answer"},
        sign{"Failed parsing HTTP/2", "it answers, but not as etcd does"},
        sign{"Socket closed",
             "it takes connections and closes them, not as etcd does; does only one of the two "
             "speak TLS (etcd://, etcds://)?"},
        sign{"connect timeout", "no connection within 2 s"},
    };
    const auto* const found =
        std::find_if(signs.begin(), signs.end(), [&](const sign& s) { return has(text, s.words); });
    return found == signs.end() ? std::string_view() : found->meaning;
}

void judge_unavailable(std::string_view text, fault& out) {
    out.leave = true;
    const bool is_over =
        has(text, "server stopped") || has(text, "timed out") || has(text, "leader changed");
    if (has(text, "etcdserver:") && !is_over) {
        out.code = errc::unavailable;
    } else {
        out.code = was_not_sent(text) ? errc::unavailable : errc::unknown_outcome;
    }
}

void judge_exhausted(std::string_view text, fault& out) {
    out.code = errc::busy;
    if (has(text, "Received message larger")) {
        // The reply to what was carried out.
        out.code = errc::unknown_outcome;
        out.read_code = errc::busy;
    }
    // Refused before it was proposed (in etcd's source: api/v3rpc/quota.go, quotaAlarmer.check), or
    // by an alarm that was there when its turn came (etcdserver/apply*, applierV3Capped): not
    // carried out. Or carried out, and told so all the same, being the one that reaches the quota
    // (quotaApplierV3.Txn). The words are the same, in 3.4, 3.5 and 3.6.
    if (has(text, "database space exceeded")) {
        out.code = errc::unknown_outcome;
        out.read_code = errc::busy;
        out.settled = true;
        out.sentence += "; compact, defragment and disarm the alarm, or raise its quota";
    }
}

void judge_argument(std::string_view text, fault& out) {
    out.code = errc::invalid;
    if (has(text, "revision of auth store is old") || has(text, "user name is empty")) {
        out.code = errc::denied;
        out.login = true;
        if (has(text, "is empty")) out.sentence += "; it wants a user and password in the URL";
    } else if (has(text, "authentication failed")) {
        out.code = errc::denied;
        out.sentence += "; it refuses the user or its password";
    } else if (has(text, "request is too large")) {
        out.code = errc::busy;
    }
}

}  // namespace

fault judge(const wire_status& status, const std::string& name) {
    fault out;
    out.sentence = name + ": ";
    const std::string_view text = status.text;
    if (status.code == wire_code::unavailable && is_hopeless(text, out)) return out;
    const auto plain = was_not_sent(text) ? plain_words(text) : std::string_view();
    out.sentence += plain.empty() ? text.substr(0, text_shown) : plain;
    switch (status.code) {
        case wire_code::unavailable: judge_unavailable(text, out); break;
        case wire_code::resource_exhausted: judge_exhausted(text, out); break;
        case wire_code::invalid_argument: judge_argument(text, out); break;
        case wire_code::unauthenticated:
            out.code = errc::denied;
            out.login = true;
            break;
        case wire_code::permission_denied:
            out.code = errc::denied;
            out.sentence += "; its user may not read and write the keys of this";
            break;
        case wire_code::not_found: out.code = errc::lost; break;
        case wire_code::out_of_range:
            out.code = has(text, "compacted") ? errc::conflict : errc::invalid;
            break;
        case wire_code::failed_precondition:
            out.code = has(text, "not leader") ? errc::unavailable : errc::invalid;
            out.leave = out.code == errc::unavailable;
            break;
        case wire_code::unimplemented:
            out.code = errc::invalid;
            out.leave = out.hopeless = true;
            out.sentence += "; it is no etcd of version 3.4 or later";
            break;
        case wire_code::ok: break;
        default:
            out.code = errc::unknown_outcome;
            out.leave = true;
            break;
    }
    return out;
}

}  // namespace trinco::detail::etcd
