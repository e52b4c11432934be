// The driver of Consul: locks of a whole fleet, kept by its servers' Raft cluster.
//
//     auto where = trinco::open("consul://127.0.0.1", {trinco::drivers::consul()});
//     trinco::session s(where);
//
//   URL                                            the servers
//   consul://HOST[:8500],HOST[:8500]...            agents of one datacenter, one or more; usually
//                                                  the one of this machine
//   consuls://HOST[:8501],...                      the same with TLS
//
// What has a meaning in a URL is written with percent signs (%26 for &). An address of IPv6 stands
// in brackets. After a ?, joined by &:
//
//   token_file=FILE     a file, no pipe, whose one line is the ACL token; it is read again when
//                       Consul refuses the token, so a new one needs no restart
//   token=TOKEN         the token itself. Without either it is that of the environment variable
//                       CONSUL_HTTP_TOKEN, or of the file that CONSUL_HTTP_TOKEN_FILE names, as
//                       with Consul's own programs; and without these, the agent's
//   dc=NAME             another datacenter than the agent's
//   ns=NAME             a namespace (Consul Enterprise)
//   ca=FILE             PEM of the only authorities that are believed; default: the system's
//   cert=FILE&key=FILE  PEM, who we are, for agents that ask; they are read anew for each
//                       connection, so a renewed certificate needs no restart
//   server_name=NAME    whom the certificates must be for, instead of the hosts
//   verify=no           believes anybody; for tests
//   prefix=NAME         all keys begin with NAME/; at most 100 bytes, a name as of a lock. Default:
//                       none, so that the locks are those of `consul lock`
//   keys=plain          the lock NAME is the key NAME, as of Go's api.Lock{Key: "NAME"}. Default:
//                       the key NAME/.lock, as of `consul lock NAME`
//   token_epoch=N       0 (default) to 255: fencing tokens are N x 2^45 larger. Raise it after a
//                       snapshot was restored to new servers, or servers began empty, since
//                       indexes, of which tokens are made, go back then
//
// Locks        yes; breakers no: what changes with each call is no load for a Raft log. A lock here
//              is the same lock as of `consul lock NAME` and of Go's api.Lock, and a semaphore the
//              same as of `consul lock -n N NAME` and of Go's api.Semaphore, also with keys=plain:
//              all wait for each other. A semaphore and a mutex of one name refuse each other
//              (errc::limit_mismatch), but with keys=plain, where they lie apart. There is no order
//              among those who wait. Names do not begin with a slash, and neither they nor keys of
//              data have a segment that is empty, "." or "..".
// Leases       are sessions: TTLs are whole seconds from 10 s on (session_ttl_min of the servers
//              may ask for more). They have no health checks, so only their TTL ends them, and the
//              loss of the node of the agent that made them: `consul leave`; by its defaults
//              SIGTERM to an agent that is no server (leave_on_terminate = false avoids that);
//              autopilot's removal of a server that is dead. Consul ends them between one TTL and
//              two after the last renewal, and a leader that is new, or begins again, lets all of
//              them begin anew. Each permit that is held has one more, with the TTL of its lease.
// Lock-delay   When a holder is lost that did not give its lock back, Consul keeps the lock from
//              everybody for some seconds more: 5 s after ours, 15 s after `consul lock`'s. So the
//              lock of a holder that was killed is free one to two TTLs and 5 s later. Permits have
//              no lock-delay, and nor has a lock whose entry an operator deletes (`trinco locks
//              break`): it is free at once.
// Kept         What is kept for a time (guarded data, records of `once`) has its end in its flags,
//              by the wall clock of who wrote it, and is over by the wall clock of who reads it.
//              Consul knows of neither. It is forgotten only when that time and a margin are over,
//              the smaller of the time and one hour: by so much clocks may differ, and NTP sees to
//              it. Reading deletes nothing.
// Addresses    All are as good. One that does not answer half of a call's time, refuses, knows no
//              leader or shows a wrong certificate is left for another one, and it comes back by
//              itself, with random waits of up to 1 s and at once when something is asked for.
//              Opening waits for none of them: what cannot be reached shows in the calls.
// Connections  as many as there are requests under way, at most 48, and one a waiter and a held
//              name, at most 96: where there are more they take turns of a second. An agent takes
//              200 of one host (limits.http_max_conns_per_client), of all its processes together:
//              where many wait on one machine, raise that.
// Rights       with ACLs: session:write for the node of the agent; key:write for NAME/.lock of a
//              lock (with keys=plain for NAME), for all that begins with NAME/ of a semaphore; of
//              `once` with a KEY for its lock .trinco/once/KEY/.lock (with keys=plain
//              .trinco/once/KEY) and its record trinco:records/once/KEY; of guarded writes for
//              their keys. What `trinco` was given as --prefix stands before NAME and before KEY
//              (.trinco/once/PREFIXKEY/.lock). All of it lies behind the prefix of the URL: with
//              one, key_prefix "PREFIX/" is all that is needed. What a token may not read is left
//              out of lists of many without a word: Consul tells nobody. Who asks for one is told.
//              `trinco locks break` needs session:read for the node of the holder's agent, too.
//
// When the server cannot serve, sessions go on until their deadline and then say so (session.hpp).
//
//   the server says                          code             and then
//   nothing; no connection; No cluster       unavailable,     another address, again until the
//   leader; No known Consul servers;         unknown_outcome  deadline
//   too many connections or requests (429)   when a change
//                                            was sent
//   another error of its own (500)           unknown_outcome  of changes; reads are repeated
//   too many requests here, a request or     busy
//   an answer is too large (413)
//   Permission denied, ACL not found, a      denied
//   certificate is not believed
//   Session id '...' not found               lost
//   a certificate for another name, no TLS,  invalid          when every address says so
//   no Consul
//   a namespace that it does not know (400)  invalid
//
// Cost         open: a thread "trinco"; while a name is looked up, one more ("trinco-names"). Lock
//              and unlock are two commits of the cluster; a permit and its end are four.
// Bounds       1,000 requests under way (48 are sent at once), 1,000 waiters and held names,
//              answers of 4 MiB: errc::busy. Values are what Consul takes, 512 KiB by default.
//              A semaphore has at most 500 permits, and all keys under its name are one answer.
// fork         Open stores after fork(), never before: in a child every call is errc::forked.
// Logs         none. What is wrong is said by the sentence of the exceptions (lock_error), as far
//              as the server tells.
// Errors       open: errc::invalid, with a sentence, for a URL that is not of this form, or for
//              what is no token in CONSUL_HTTP_TOKEN. Nothing else: a server that is not there, or
//              a file that cannot be read, shows in the calls.
// Thread-safety: a driver may be copied and used from any thread. Stores share nothing.
#pragma once

#include "trinco/store.hpp"

namespace trinco::drivers {

[[nodiscard]] driver consul();

}  // namespace trinco::drivers
