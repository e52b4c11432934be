#include "store/etcd/etcd_fault.hpp"

#include <string_view>

namespace trinco::detail::etcd {
namespace {

constexpr std::size_t text_shown = 300;

bool has(std::string_view text, std::string_view words) {
    return text.find(words) != std::string_view::npos;
}

void judge_unavailable(std::string_view text, fault& out) {
    out.leave = true;
    const bool is_over =
        has(text, "server stopped") || has(text, "timed out") || has(text, "leader changed");
    const bool refused = has(text, "etcdserver:") && !is_over;
    out.code = refused ? errc::unavailable : errc::unknown_outcome;
}

void judge_exhausted(std::string_view text, fault& out) {
    out.code = errc::busy;
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

// What the server said.
void judge_answer(const wire_status& status, fault& out) {
    const std::string_view text = status.text;
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
}

}  // namespace

fault judge(const wire_status& status, const std::string& name) {
    fault out;
    out.sentence = name + ": " + status.text.substr(0, text_shown);
    const bool is_too_large = status.code == wire_code::resource_exhausted;
    switch (status.by) {
        case wire_cause::server: judge_answer(status, out); break;
        case wire_cause::not_sent:
            out.code = is_too_large ? errc::busy : errc::unavailable;
            out.leave = !is_too_large;
            break;
        case wire_cause::broken:
            out.code = errc::unknown_outcome;
            // The reply to what was carried out, as it will be again.
            if (is_too_large) out.read_code = errc::busy;
            out.leave = !is_too_large;
            break;
        case wire_cause::misdirected:
        case wire_cause::distrusted:
            out.code = status.by == wire_cause::distrusted ? errc::denied : errc::invalid;
            out.leave = out.hopeless = true;
            break;
    }
    return out;
}

}  // namespace trinco::detail::etcd
