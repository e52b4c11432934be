// The way to etcd: requests that are answered once, watches, and the shared stream of keep-alives.
// What it stands on, a network or a simulated cluster, is its own affair; it keeps itself up.
//
// The rules of core/loop.hpp hold: the loop's thread; a completion runs later, at most once, by the
// deadline plus a turn; dropping an op drops the interest (and cancels the request, which may have
// been applied).
//
// Endpoints    All members are as good: a request goes to the one in use. When it does not answer
//              half of a request's time, refuses the connection, or says that it has no leader,
//              the next one is used from then on, in a random order with full jitter between
//              rounds (100 ms ... 1 s); a request made while no connection is up tries at once.
// Repeating    Only what changes nothing is repeated (ranges, read-only transactions, facts,
//              status), and what was certainly not sent; until its deadline. Whoever sends a
//              change again must know that this is safe.
// Leader       Every request but doctor's demands a leader, streams too (hasleader): a member that
//              lost its cluster says so at once and is left.
// Login        With a user: a token is fetched before the first request, and anew when the server
//              answers that it is invalid, too old (the auth store's revision moved) or missing;
//              the request is then sent once more, since nothing was applied. Streams are reopened
//              with the new token.
// Bounds       A message in either direction is at most 4 MiB. At most 20,000 requests are under
//              way and 20,000 watches open; more are errc::busy.
//
// Errors
//   unavailable      not applied: no connection, no leader, the server is stopping
//   unknown_outcome  sent, and the answer did not come, or the server itself does not know
//                    ("request timed out", leader changed): of changes only. Also "database space
//                    exceeded", of transactions: the one that reaches the quota is carried out and
//                    told so, and those behind it are not; then txn_reply::settled is set
//   busy             too many requests, a message too large; database space exceeded, of a lease
//                    (one that is granted all the same ends by itself)
//   denied           wrong password, permission denied, a user is needed, a certificate refused
//   lost             the lease that was named does not exist
//   invalid          what etcd refuses as a request; also a name in a certificate that is not the
//                    server's, an endpoint that does not speak gRPC: why() has the sentence
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "core/loop.hpp"
#include "core/unique_function.hpp"
#include "store/etcd/etcd_messages.hpp"

namespace trinco::detail::etcd {

class rpc {
public:
    virtual ~rpc() = default;

    // One atomic step: reads, changes, both.
    [[nodiscard]] virtual op txn(const txn_request& what, deadline by,
                                 completion<txn_reply> done) = 0;
    // A new lease of at least this TTL; the server picks its id, which is positive.
    [[nodiscard]] virtual op grant(std::chrono::seconds ttl, deadline by,
                                   completion<lease_reply> done) = 0;
    // Ends the lease and erases its keys; succeeds when there is none.
    [[nodiscard]] virtual op revoke(std::int64_t lease, deadline by, completion<int> done) = 0;
    // One message on the shared stream of keep-alives, on a connection of its own where watches
    // and heavy reads cannot hold it up. The TTL granted anew; `lost` when the lease is gone.
    // Renewing is safe to repeat, and is repeated on another endpoint within the deadline.
    [[nodiscard]] virtual op keep_alive(std::int64_t lease, deadline by,
                                        completion<std::chrono::seconds> done) = 0;
    [[nodiscard]] virtual op facts(std::int64_t lease, bool with_keys, deadline by,
                                   completion<lease_facts> done) = 0;

    // Events of these keys in order, none twice and none left out, for as long as the op lives:
    // after an interruption it goes on behind the last revision told. Calls `over` instead, once
    // and as the last, with `conflict` when what it had to go on with is compacted away (read
    // again, then watch from that reading's revision), or with denied or invalid. While the server
    // is away it is silent: whoever waits must also look now and then.
    using on_news = unique_function<void(const watch_news&)>;
    using on_over = unique_function<void(std::error_code)>;
    [[nodiscard]] virtual op watch(const watch_request& what, on_news news, on_over over) = 0;

    // Every endpoint's own account, also of those that cannot be reached (`errors` has why).
    [[nodiscard]] virtual op status(deadline by, completion<std::vector<server_status>> done) = 0;
    [[nodiscard]] virtual op members(deadline by, completion<std::vector<member>> done) = 0;

    // Why requests fail at present, in one sentence without secrets; empty when they do not.
    [[nodiscard]] virtual std::string trouble() const = 0;
    // The same, if it is why something was told this error; else empty.
    [[nodiscard]] virtual std::string why(const std::error_code& told) const = 0;
    // Whether nobody listened at any endpoint when all were tried last. Any thread.
    [[nodiscard]] virtual bool is_refused() const noexcept { return false; }
    // Ends everything within the deadline; completions that are due do not run afterwards.
    [[nodiscard]] virtual op stop(deadline by, completion<int> done) = 0;
};

}  // namespace trinco::detail::etcd
