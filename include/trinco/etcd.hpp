// The driver of etcd (3.4 or later): locks of a whole fleet, kept by a Raft cluster.
//
//     auto where = trinco::open("etcd://10.0.0.1,10.0.0.2,10.0.0.3", {trinco::drivers::etcd()});
//     trinco::session s(where);
//
//   URL                                                  the servers
//   etcd://[USER:PASSWORD@]HOST[:2379],HOST[:2379]...    members of one cluster, one or more
//   etcds://...                                          the same with TLS
//
// What has a meaning in a URL is written with percent signs (%40 for @). An address of IPv6 stands
// in brackets. After a ?, joined by &:
//
//   ca=FILE             PEM of the only authorities that are believed; default: the system's
//   cert=FILE&key=FILE  PEM, who we are, for servers that ask; they are read anew for each
//                       connection, so a renewed certificate needs no restart
//   server_name=NAME    whom the certificates must be for, instead of the hosts
//   verify=no           believes anybody; for tests
//   prefix=NAME         all keys begin with NAME/; at most 100 bytes, a name as of a lock. Default:
//                       none, so that the locks are those of etcdctl. NAME, and what it lies in
//                       (of a/b also a), is then no name for a lock of etcdctl or Go: they would
//                       wait for whatever is kept under it. Locks of Trinco do not
//   token_epoch=N       0 (default) to 255: tokens are N x 2^45 larger. Raise it, in the URLs of
//                       all, after a snapshot was restored or the cluster was made anew, since
//                       revisions, of which tokens are made, go back then
//
// Locks        yes; breakers no: what changes with each call is no load for a Raft log. A lock here
//              is the same lock as of `etcdctl lock NAME`, of Go's concurrency package, jetcd and
//              etcd's Lock service: all wait for each other in the order of coming.
// Members      All are as good. One that does not answer half of a call's time, refuses, has no
//              leader or shows a wrong certificate is left for another one, and connections come
//              back by themselves, with random waits of up to 1 s and at once when something is
//              asked for. List all members: one that is listed alone is one that must not fail.
//              Opening waits for none of them: what cannot be reached shows in the calls.
// Connections  up to three to the member in use, each made when it is first needed: for requests,
//              for renewals, for watches, so that a flood of one does not delay the others.
// Leases       TTLs are whole seconds. The server raises one that is below 1.5 times its election
//              timeout (2 s by its defaults), and the session says what was granted. A new leader
//              lets all leases begin anew: a lock of a dead holder may stay for twice its TTL.
//              What is kept for a time (guarded data, records) hangs on leases, too.
// Login        USER and PASSWORD are exchanged for a token when something is first asked for, and
//              again whenever the server does not take it any more (by default it forgets one that
//              nobody used for 300 s). A refused password is tried again after 5 s. Where etcd asks
//              nobody who he is, user and password are not used.
// Rights       read and write: of a lock NAME on what begins with NAME/; of `once` with a KEY on
//              what begins with .trinco/once/KEY/, its lock, and on trinco:records/once/KEY, its
//              record; of guarded writes on their keys. What `trinco` was given as --prefix stands
//              before NAME and before KEY (.trinco/once/PREFIXKEY/). `trinco records` reads both
//              places of all keys, or of those with that prefix. All of it lies behind the prefix
//              of the URL: read and write on what begins with that prefix and '/' is all that is
//              needed then. Renewal needs the right to write every key of the lease.
//
// When the server cannot serve, sessions go on until their deadline and then say so (session.hpp).
//
//   the server says                          code             and then
//   nothing; no connection; no leader        unavailable,     another member, again until the
//                                            unknown_outcome  deadline
//                                            when a change
//                                            was sent
//   request timed out, leader changed        unknown_outcome  of changes; reads are repeated
//   too many requests, request is too large  busy
//   database space exceeded                  busy,            A full database takes no lock until
//                                            unknown_outcome  it was compacted, defragmented and
//                                            of guarded       its alarm disarmed. The change that
//                                            writes,          fills it is made, and refused in the
//                                            proclaim and     same words as those behind it.
//                                            eviction         Before 3.5.7 (3.4.20) it refuses
//                                                             giving back, too: locks end by their
//                                                             TTL
//   authentication failed, permission        denied
//   denied, a certificate is not believed
//   lease not found                          lost
//   a certificate for another name, no TLS,  invalid          when every member says so
//   no etcd
//
// Cost         open: a thread "trinco"; while a name is looked up, one more ("trinco-names"). Lock
//              and unlock are two commits of the cluster; a lock that was waited for one commit and
//              one read.
// Bounds       20,000 requests under way (256 are sent at once), 20,000 watches (one a waiter, one
//              a held name), messages of 4 MiB: errc::busy. A semaphore has at most 500 permits.
// fork         Open stores after fork(), never before: in a child every call is errc::forked.
// Logs         none. What is wrong is said by the sentence of the exceptions (lock_error), as far
//              as the server tells.
// Errors       open: errc::invalid, with a sentence, for a URL that is not of this form. Nothing
//              else: a server that is not there, or a file that cannot be read, shows in the calls.
// Thread-safety: a driver may be copied and used from any thread. Stores share nothing.
#pragma once

#include "trinco/store.hpp"

namespace trinco::drivers {

[[nodiscard]] driver etcd();

}  // namespace trinco::drivers
