#include "store/consul/consul_fault.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/names.hpp"
#include "core/quoted.hpp"
#include "net/tls_factory.hpp"
#include "store/stream_trouble.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::size_t text_shown = 300;
constexpr const char* no_consul =
    "; it answers, but not as Consul does: is this its HTTP port (8500)?";
constexpr server_words words{"Consul", "consul"};

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// What the server wrote, for a sentence.
std::string shown(std::string_view body) {
    while (!body.empty() && (body.back() == '\n' || body.back() == '\r')) body.remove_suffix(1);
    if (!is_one_line(body)) return detail::quoted(body, text_shown);
    auto end = std::min(body.size(), text_shown);
    // Not in the midst of a letter of UTF-8.
    while (end < body.size() && end > 0 &&
           (static_cast<unsigned char>(body[end]) & 0xc0U) == 0x80) {
        --end;
    }
    return std::string(body.substr(0, end));
}

// Consul has the words of an error instead of a code: those with which it says that it did nothing.
bool was_not_applied(std::string_view text) {
    constexpr std::array<std::string_view, 13> all{
        "No cluster leader",
        "No known Consul servers",
        "No path to datacenter",
        "Remote DC has no server currently reachable",
        "Not ready to serve consistent reads",
        "Raft leader not found",
        "node is not the leader",
        "leadership transfer in progress",
        "timed out enqueuing operation",
        "rpc error getting client",
        "lead thread didn't get connection",
        "ate limit exceeded",
        "Missing node registration",
    };
    return std::any_of(all.begin(), all.end(), [&](auto part) { return has(text, part); });
}

void judge_internal(std::string_view text, fault& out) {
    out.leave = true;
    if (was_not_applied(text)) {
        out.code = errc::unavailable;
        if (has(text, "No path to datacenter")) out.sentence += "; is dc= right?";
        if (has(text, "Missing node registration")) {
            out.sentence += "; the agent is not yet known to its servers";
        }
    } else if (has(text, "Invalid ")) {
        // Of a session: its checks come before anything is done.
        if (has(text, "Invalid Session TTL")) {
            out.sentence += "; ask for a TTL within these bounds (session_ttl_min of the servers)";
        }
        out.code = errc::invalid;
        out.leave = false;
    } else {
        out.code = errc::unknown_outcome;
    }
}

void judge_refused(std::string_view text, fault& out) {
    out.code = errc::denied;
    out.token = true;
    if (has(text, "ACL not found")) {
        out.sentence += "; it does not know the token (token_file=, CONSUL_HTTP_TOKEN)";
    } else if (has(text, "nonymous") || has(text, "00000000-0000-0000-0000-000000000002")) {
        out.sentence += "; it wants a token (token_file=, CONSUL_HTTP_TOKEN)";
    }
}

void judge_response(const http_response& response, fault& out) {
    const std::string_view text = response.body;
    switch (response.status) {
        case 400:
            out.code = errc::invalid;
            if (has(text, "HTTP request to an HTTPS server")) {
                out.leave = out.hopeless = true;
                out.sentence += "; it speaks TLS: begin the URL with consuls://";
            }
            break;
        case 401:
        case 403: judge_refused(text, out); break;
        case 404:
            out.code = text.starts_with("Session id") ? errc::lost : errc::invalid;
            if (out.code == errc::invalid) out.sentence += no_consul;
            break;
        case 413: out.code = errc::busy; break;
        case 429:
            if (has(text, "concurrent connections")) {
                out.sentence += " (limits.http_max_conns_per_client of the agent)";
            }
            break;
        default:
            // Also of a proxy before it: only the words tell whether anything was done.
            if (response.status / 100 == 5) {
                judge_internal(text, out);
            } else {
                out.code = errc::invalid;
                out.sentence += no_consul;
            }
            break;
    }
}

void judge_stream(const std::error_code& error, const std::optional<tls_settings>& tls,
                  fault& out) {
    auto what = trouble_of(error, tls, words);
    // Not connected by a short deadline: whether it answers shows in half of a longer one.
    out.leave = error != std::errc::timed_out;
    out.sentence += what.sentence;
    if (what.kind == stream_trouble::kind_t::away) return;
    out.hopeless = true;
    out.code = what.kind == stream_trouble::kind_t::distrusted ? errc::denied : errc::invalid;
}

void judge_error(const http_answer& said, const std::optional<tls_settings>& tls, fault& out) {
    const auto& error = said.error;
    // With TLS 1.3 a server says only after the request what it thinks of our certificate.
    const bool is_turned_away =
        error == tls_errc::certificate_wanted || error == tls_errc::refused_by_peer;
    if (error == std::errc::invalid_argument) {
        out.code = errc::invalid;
        out.sentence += said.why;
    } else if (!said.sent || is_turned_away) {
        judge_stream(error, tls, out);
    } else if (error == std::errc::timed_out) {
        out.code = errc::unknown_outcome;
        out.sentence += "did not answer in time";
    } else if (error == std::errc::message_size) {
        out.code = errc::unknown_outcome;
        out.read_code = errc::busy;
        out.sentence += said.why;
    } else if (error == std::errc::protocol_error) {
        out.code = errc::unknown_outcome;
        out.read_code = errc::invalid;
        out.leave = true;
        out.sentence += "it answers, but not as Consul does: " + said.why;
    } else {
        out.code = errc::unknown_outcome;
        out.leave = true;
        out.sentence += said.why;
    }
}

}  // namespace

bool is_answer(const http_answer& said) noexcept {
    if (said.error) return false;
    switch (said.response.status) {
        case 200:
        case 409: return true;
        case 404: return !field_of(said.response.fields, "X-Consul-Index").empty();
        default: return false;
    }
}

fault judge(const http_answer& said, const std::string& name,
            const std::optional<tls_settings>& tls) {
    fault out;
    out.sentence = name + ": ";
    if (said.error) {
        judge_error(said, tls, out);
        return out;
    }
    const auto text = shown(said.response.body);
    out.sentence +=
        text.empty() ? "answers with the status " + std::to_string(said.response.status) : text;
    judge_response(said.response, out);
    return out;
}

}  // namespace trinco::detail::consul
