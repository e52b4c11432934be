// The driver of local: breakers and locks of all processes of one machine, kept in a file.
//
//     auto a = trinco::open("local:", {trinco::drivers::local()});
//     auto b = trinco::open("local:/srv/shop/trinco.db", {trinco::drivers::local()});
//
// No server: whoever opens the file shares what is in it. For the services and the jobs of one
// machine, and to begin with before there is a fleet. Breakers are shared under one namespace,
// locks by all who have the file open.
//
//   URL               breakers  locks  the file
//   local:            yes       yes    of this user: /var/lib/trinco/local.db for root, otherwise
//                                      .local/state/trinco/local.db in the home that the password
//                                      database names. Its folder is made. The environment has no
//                                      say, so that a job under cron or sudo does not get another
//                                      store without knowing
//   local:/a/file.db  yes       yes    this one; its folder must exist. Users share a file when
//                                      they may all write to it and to its folder, as they may
//                                      after 'trinco setup --machine'
//
// Beside the file lie its log (-wal, -shm), its gate (-gate), the bytes of those who live (-live)
// and a socket of each process that has it open (-s...). They belong to it; what is missing is made
// again, but nobody may remove them while the file is open.
//
// One machine  The file must lie on a disk of this machine: a network file system and everything on
//              FUSE is errc::not_supported, as is a file that another machine has used. The machine
//              is the kernel: containers may share a file, by its folder, but not across time
//              namespaces.
// Durability   A process that dies loses nothing. A machine that dies may lose the last changes,
//              never the file; what processes know of breakers they bring back. Records of locks
//              are on the disk before they are answered.
// Tokens       grow for ever, also when the machine died and the last grants with it: each life of
//              the machine has numbers of its own, which are on the disk before the first grant.
//              Only a file that is restored from a backup, or removed and made anew, goes back.
// Death        A session ends when its process is gone, at once, or when a descendant that
//              inherited it is; it does not wait for its TTL. The kernel tells, not a pid: a holder
//              in another container is not taken for dead. fork() without exec inherits: such a
//              child keeps the session alive until its TTL runs out.
// Restart      Another life of the machine ends all sessions.
// Time         The machine's boot clock: no step of the wall clock opens or closes a breaker or
//              ends a lease.
// Notices      A change is told to the other processes at once, by a datagram; where that fails
//              within a second.
// Removed      A file that is removed or replaced while it is open makes every change fail
//              (errc::unavailable) until the store is opened anew: two processes never work on two
//              files of one name. Sessions are lost, as they learn at their next renewal. When
//              -live is removed nobody can open the store until the sessions that are under way
//              have ended. Copy a file while nobody has it open.
// Stopped      A process that is stopped (SIGSTOP) in the middle of a change, some tens of
//              microseconds, holds everybody up; calls end by their deadlines. So does a child of
//              fork() without exec when its parent is killed at that moment.
// Cost         open: a thread "trinco-local", seven descriptors, and one for each session; some
//              milliseconds. A call: one transaction, shared with those that wait at the same time;
//              only records of locks wait for the disk. Calls without a pause keep two threads
//              awake, for 100 us after the last.
// Bounds       100,000 breakers, 10,000 sessions, 100,000 claims, 100,000 records a file
//              (errc::busy).
// Errors       open: errc::invalid (what follows local: is no absolute path of a file), and what
//              depends on the machine: unavailable (a folder that does not exist, a file that is
//              not ours or is damaged, a user without a home, no descriptors left), denied (no
//              right to use folder or file), not_supported (above, or a newer version's layout).
//              Calls: unavailable and denied (the file cannot be read or written), busy (the disk
//              is full).
// Thread-safety: a driver may be copied and used from any thread.
#pragma once

#include "trinco/store.hpp"

namespace trinco::drivers {

[[nodiscard]] driver local();

}  // namespace trinco::drivers
