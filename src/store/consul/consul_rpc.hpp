// The way to Consul: requests that are answered once, and watches, which are blocking queries. What
// it stands on, HTTP or a simulated cluster, is its own affair; it keeps itself up.
//
// The rules of core/loop.hpp hold: the loop's thread; a completion runs later, at most once, by the
// deadline plus a turn; dropping an op drops the interest (and the request, which may have been
// applied).
//
// Addresses    All are as good: a request goes to the one in use. When it does not answer half of a
//              request's time, refuses the connection, or has no leader, the next one is used from
//              then on, in a random order with full jitter between rounds (100 ms ... 1 s).
// Repeating    Only what changes nothing is repeated (reads, transactions that only read, facts),
//              and what was certainly not sent; until its deadline. Renewing and destroying a
//              session are safe to repeat, and are. Whoever sends another change again must know
//              that this is safe.
// Watches      follow the rules of blocking queries: the index that is sent is never 0 after the
//              first answer; one that goes backwards begins anew; an answer without a change is no
//              news; waits are at most 5 min at the server, whose jitter of 1/16 is allowed for;
//              each has a connection of its own, and at most one answer is asked for in 100 ms.
// Bounds       An answer is at most 4 MiB. At most 1,000 requests are under way and 1,000 watches
//              open; more are errc::busy.
//
// Errors
//   unavailable      not applied: no connection, no leader ("No cluster leader"), the agent cannot
//                    reach its servers, the request was limited (429)
//   unknown_outcome  sent, and the answer did not come, or was 5xx of a change that may be applied
//   busy             too many requests under way, a message too large (413)
//   denied           the token is missing, unknown or has no right to it; a certificate refused
//   lost             the session that was named does not exist
//   invalid          what Consul refuses as a request (400), or does not know (404 of an API); also
//                    a name in a certificate that is not the server's, or what is not HTTP: why()
//                    has the sentence
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/loop.hpp"
#include "core/unique_function.hpp"
#include "store/consul/consul_messages.hpp"

namespace trinco::detail::consul {

class rpc {
public:
    virtual ~rpc() = default;

    // One atomic step. Being refused is an answer (txn_reply::applied), not an error. Of one that
    // only reads the leader asks a majority first, as of a consistent read.
    [[nodiscard]] virtual op txn(const txn_request& what, deadline by,
                                 completion<txn_reply> done) = 0;
    [[nodiscard]] virtual op read(const read_request& what, deadline by,
                                  completion<read_reply> done) = 0;
    // Keys only, of all that begin with the prefix; large answers are `busy`.
    [[nodiscard]] virtual op keys(std::string_view prefix, deadline by,
                                  completion<std::vector<std::string>> done) = 0;

    // A new session without health checks, which ends by its TTL alone (and with the agent's node);
    // its id.
    [[nodiscard]] virtual op create(const session_request& what, deadline by,
                                    completion<std::string> done) = 0;
    // The TTL granted anew, which may be longer than asked for; `lost` when the session is gone.
    [[nodiscard]] virtual op renew(std::string_view session, deadline by,
                                   completion<std::chrono::seconds> done) = 0;
    // Ends the session; succeeds when there is none.
    [[nodiscard]] virtual op destroy(std::string_view session, deadline by,
                                     completion<int> done) = 0;
    // nullopt: there is none, by the word of a leader that asked a majority.
    [[nodiscard]] virtual op facts(std::string_view session, deadline by,
                                   completion<std::optional<session_facts>> done) = 0;
    // All sessions of the datacenter. Never on a hot path.
    [[nodiscard]] virtual op sessions(deadline by, completion<std::vector<session_facts>> done) = 0;

    // The state of the key, or of all under it, now and whenever it may have changed, for as long
    // as the op lives; intermediate states may be left out, never the last. Calls `over` instead,
    // once and as the last, with denied or invalid. While the server is away it is silent: whoever
    // waits must also look now and then.
    using on_news = unique_function<void(const read_reply&)>;
    using on_over = unique_function<void(std::error_code)>;
    [[nodiscard]] virtual op watch(const read_request& what, on_news news, on_over over) = 0;

    // Every address's own account, also of those that cannot be reached (`why`). For doctor.
    [[nodiscard]] virtual op status(deadline by, completion<std::vector<server_status>> done) = 0;

    // Why requests fail at present, in one sentence without secrets; empty when they do not.
    [[nodiscard]] virtual std::string trouble() const = 0;
    // The same, if it is why something was told this error; else empty.
    [[nodiscard]] virtual std::string why(const std::error_code& told) const = 0;
    // Whether nobody listened at any address when all were tried last. Any thread.
    [[nodiscard]] virtual bool is_refused() const noexcept { return false; }
    // Ends everything within the deadline; completions that are due do not run afterwards.
    [[nodiscard]] virtual op stop(deadline by, completion<int> done) = 0;
};

}  // namespace trinco::detail::consul
