// The driver of redis: circuit breakers of a whole fleet, kept in Redis (6.0 or later) or Valkey.
//
//     auto where = trinco::open("redis://127.0.0.1", {trinco::drivers::redis()});
//     trinco::breaker_registry breakers(where);
//
//   URL                                                 the server
//   redis://[USER:PASSWORD@]HOST[:6379][/DB]            one
//   rediss://...                                        one, with TLS
//   redis+unix:/PATH[?db=N], redis+unix://USER:PASSWORD@/PATH[?db=N]
//                                                       one of this machine, by its socket
//   redis+sentinel://[USER:PASSWORD@]HOST[:26379],HOST.../NAME[/DB]
//                                                       the primary that these Sentinels know by
//                                                       NAME, followed through fail-overs
//   redis+cluster://[USER:PASSWORD@]HOST[:6379],HOST... a cluster, found through any of these
//
// :PASSWORD@ is the password of the user "default". What has a meaning in a URL is written with
// percent signs (%40 for @). An address of IPv6 stands in brackets. After a ?, joined by &:
//
//   tls=yes             TLS where the scheme does not say so; to Sentinels, too
//   ca=FILE             PEM of the only authorities that are believed; default: the system's
//   cert=FILE&key=FILE  PEM, who we are, for servers that ask
//   server_name=NAME    whom the certificate must be for, instead of the host
//   verify=no           believes anybody; for tests
//   sentinel_user=, sentinel_password=   of the Sentinels; without them none is sent
//
// Breakers     yes; locks no: a server that may forget what it answered is no place for them.
// Connections  one for commands and one for notices a process; to Sentinels another one, in a
//              cluster one a node. They keep themselves up, with random waits of up to 1 s, and at
//              once when something is asked for. Opening waits for none of them: what cannot be
//              reached shows in the calls.
// Calls        are never stalled: a cached decision asks nobody. Exchanges with the server end by
//              store_timeout, also when it is dead, hangs, or the network swallows everything.
// Cost         open: a thread "trinco", five descriptors. An exchange is one EVALSHA a breaker, all
//              in one pipeline, each 0.1 to 0.3 ms of the server's time. Commands do not grow
//              with the rate of calls: sync_interval and exchange_budget of breaker_options.hpp.
// Memory       of a breaker at the server: some kilobytes, and some hundred bytes for each voter
//              and each instance heard within live_for. Every key has a time to live, key_ttl after
//              the last of its deadlines, so that a fleet that is gone leaves nothing behind.
// Keys         trinco:1:NAMESPACE:{BREAKER} and the same with :voters and :instances;
//              trinco:1:NAMESPACE:index; the channel trinco:1:NAMESPACE:changes, with @3 behind it
//              for database 3: databases have nothing in common. 1 is the layout of the keys;
//              records have one of their own (2). A breaker that a later version has written is
//              errc::not_supported here, and goes on in each process alone.
//
// Rights       A user of its own is best. This is all that it needs, for any namespace:
//
// ACL SETUSER trinco on >PASSWORD resetkeys ~trinco:1:* resetchannels &trinco:1:* -@all
//     +eval +evalsha +select +ping +publish +subscribe +time +del +pexpire +pttl
//     +hget +hgetall +hmget +hset +hdel +zadd +zrem +zcard +zcount
//     +zrange +zrangebylex +zrangebyscore +zrevrangebyscore
//
//              Redis 6.0 knows no rights to channels: there, leave resetchannels and &... out.
//              +info lets it notice that the server was restarted, +client|setname makes it show as
//              "trinco" in CLIENT LIST; both may be missing. By Sentinels it also needs +role, in a
//              cluster +cluster|slots and +asking. Without the right to the channel changes are
//              asked for every 100 ms, which costs commands. A user of the Sentinels needs
//              +sentinel|get-master-addr-by-name, +subscribe and the channel +switch-master; with
//              +sentinel|master a primary that was restarted is followed only when none of them is
//              replacing it.
//
// When the server cannot serve, each process goes on alone after degraded_after (1 s), with what it
// knew of the fleet, and returns by itself. breaker_registry::report() counts the errors:
//
//   the server says                      code             and then
//   nothing; the connection breaks       unavailable,     connects anew, repeats until the deadline
//                                        unknown_outcome when it was sent
//   LOADING, READONLY, MASTERDOWN,       unavailable      looks for the server anew (by Sentinels:
//   NOREPLICAS, MISCONF, CLUSTERDOWN,                     the primary; a single server: after
//   TRYAGAIN                                              50 ms ... 1 s, and not for NOREPLICAS
//                                                         and MISCONF), repeats until the deadline
//   OOM, BUSY                            busy             tries again at the next exchange. Give
//                                                         breakers a server that evicts nothing
//                                                         (maxmemory-policy noeviction)
//   NOAUTH, WRONGPASS, NOPERM            denied           logs in again every 5 s; a right is
//                                                         asked for again every second
//   WRONGTYPE                            conflict         that breaker goes on alone: something
//                                                         else lives under its key
//   NOSCRIPT, MOVED, ASK                 none             are followed
//
// What is lost when the server loses its data (killed without persistence, FLUSHALL, a fail-over to
//              a replica that lags behind, an old dump): counts of the running window, totals, and
//              leases of probes. Not lost: state, remaining time, overrides and options, which any
//              living process brings back; for probe_timeout no probe is granted then, since old
//              ones may be under way. Persistence is of use only where no process lives on.
// Time         The server's clock decides. When it steps back deadlines do not grow; when it steps
//              forward they pass early.
// Errors       open: errc::invalid, with a sentence, for a URL that is not of this form. Nothing
//              else: a server that is not there is no error of open.
// Thread-safety: a driver may be copied and used from any thread. Stores share nothing.
#pragma once

#include "trinco/store.hpp"

namespace trinco::drivers {

[[nodiscard]] driver redis();

}  // namespace trinco::drivers
