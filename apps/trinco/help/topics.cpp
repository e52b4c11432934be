#include <array>

#include "apps/trinco/help/help.hpp"

namespace trinco::program {
namespace {

constexpr std::string_view urls =
    R"(Breakers and locks are kept in a store, named by its URL: --breakers URL, --locks URL, or the
configuration ('trinco help config').

  URL              breakers  locks  for
)"
#if TRINCO_LOCAL
    R"(  local:           yes       yes    all processes of a user on this machine: services, jobs,
                                    cron; a file in the user's home, /var/lib/trinco for root.
                                    The default
  local:/FILE.db   yes       yes    in a file that users can share and whose folder must exist
)"
#endif
#if TRINCO_REDIS
    R"(  redis://HOST     yes       no     a fleet: Redis from 6.0 on, or Valkey; see below
)"
#endif
#if TRINCO_ETCD
    R"(  etcd://HOST      no        yes    a fleet: etcd from 3.4 on; see below
)"
#endif
#if TRINCO_CONSUL
    R"(  consul://HOST    no        yes    a fleet: Consul; see below
)"
#endif
    R"(  memory:          yes       yes    one process: tests of what uses the library; refused here
  memory:NAME      yes       yes    the same, several apart from each other

A program opens the same store with the driver of its scheme: trinco::open(url, {drivers...}) with
trinco::drivers::redis(), etcd(), consul(), local() or memory(). See include/trinco/store.hpp.
)"
#if TRINCO_REDIS
    R"(
  redis://HOST[:6379][/DB]                      one server
  rediss://HOST                                 the same with TLS
  redis+unix:/PATH[?db=N]                       the same by its Unix socket
  redis+sentinel://HOST[:26379],HOST,.../NAME   the primary that these Sentinels know by NAME
  redis+cluster://HOST[:6379],HOST,...          a cluster, found through any of these

  USER@ before the host        who logs in; the password is given apart: TRINCO_BREAKERS_PASSWORD,
                               or a file ('trinco help config'). USER:PASSWORD@ is read from
                               variables and files, and refused in a command line
  ?ca=FILE                     PEM of the only authorities that are believed (rediss:, tls=yes)
  ?cert=FILE&key=FILE          PEM, who we are
  ?server_name=NAME            whom the certificate must be for, instead of the host
  ?tls=yes, ?verify=no         TLS to Sentinels and nodes, too; believe anybody (for tests)
  ?sentinel_user=, ?sentinel_password=          of the Sentinels

What has a meaning in a URL is written with percent signs (%40 for @). 'trinco doctor' looks whether
all is well there, and which rights the user lacks.
)"
#endif
#if TRINCO_ETCD
    R"(
  etcd://HOST[:2379],HOST,...    the members of one cluster: name all, so that one may be away
  etcds://HOST,...               the same with TLS

  USER:PASSWORD@ before them     who logs in; from TRINCO_LOCKS or a file, since every user of the
                                 machine can read a command line
  ?ca=, ?cert=&key=, ?server_name=, ?verify=no     as for Redis: PEM files, whom to believe
  ?prefix=NAME                   all keys begin with NAME/; default: none, so that locks and
                                 elections are those of etcdctl and of Go's concurrency package
  ?token_epoch=N                 0 to 255; raise it after a snapshot was restored or the cluster
                                 was made anew, since tokens are made of revisions, which go back
                                 then
)"
#endif
#if TRINCO_CONSUL
    R"(
  consul://HOST[:8500],HOST,...  agents of one datacenter; usually the one of this machine alone
  consuls://HOST[:8501],...      the same with TLS

  ?token_file=FILE               the ACL token, one line; else CONSUL_HTTP_TOKEN, or the file that
                                 CONSUL_HTTP_TOKEN_FILE names, as with Consul's own programs.
                                 ?token=TOKEN from TRINCO_LOCKS or a file only: every user of the
                                 machine can read a command line
  ?dc=NAME, ?ns=NAME             another datacenter; a namespace of Consul Enterprise
  ?ca=, ?cert=&key=, ?server_name=, ?verify=no     as for Redis: PEM files, whom to believe
  ?prefix=NAME                   all keys begin with NAME/; default: none, so that a lock NAME is
                                 that of 'consul lock NAME'
  ?keys=plain                    a lock's key is its name, not NAME/.lock: that of Go's api.Lock
  ?token_epoch=N                 0 to 255; raise it after a snapshot was restored, since tokens are
                                 made of indexes, which go back then
)"
#endif
    ;

constexpr std::string_view exit_codes =
    R"(code     meaning
0        done; of 'trinco doctor': nothing is bad
1        of 'trinco locks show' and 'trinco records show': nobody holds it, nothing is recorded;
         of 'trinco doctor --strict': warnings and nothing worse; of 'trinco demo': not all held
1-63     the command's own, as all others when it ran and nothing below happened
64       the command line or a configuration file is wrong; one line on standard error says
         what was meant
69       the store cannot be used: its folder is not there, its file is not one, no answer in time
         (a server of locks is tried as long as --wait says, a second at least and 5 s at most).
         'trinco call' decides by its mirror then, or without one runs its command all the same;
         with --on-no-store refuse it does neither
74       standard output could not be written
75       the lock was not acquired in time, or the circuit breaker refuses the call; of 'trinco
         elect': it does not lead by then
76       the lock was lost while the command ran
77       the store cannot be used for want of rights; for the rest as 69
79       what 'trinco once' is to run was interrupted, here or elsewhere: nobody knows whether it
         was done; 'trinco records resolve' says so
126      the command cannot be executed
127      there is no such command
128+n    the command, or the wait for it, was ended by signal n

Data goes to standard output, messages to standard error, each beginning with "trinco: ".
)";

constexpr std::string_view environment =
    R"(Read, unless empty; an option of the command line counts more, a file less:

  variable             option        is
  TRINCO_BREAKERS      --breakers    the URL of the store of breakers ('trinco help urls')
  TRINCO_LOCKS         --locks       the URL of the store of locks
  TRINCO_NAMESPACE     --namespace   whose breakers: those of an environment
  TRINCO_LOCKS_PREFIX  --prefix      what stands before the name of every lock
  TRINCO_LOCKS_TTL     --ttl         what locks, elections and 'trinco once' ask for: 30s
  TRINCO_INSTANCE      --instance    the failure domain that this process counts as; the machine
  TRINCO_BREAKERS_PASSWORD           the password of the server of the breakers
  TRINCO_BREAKERS_PASSWORD_FILE      the file whose one line it is
  TRINCO_BREAKERS_MIRROR             where 'trinco call' remembers what a server said, for the time
                                     in which it does not answer: local:, local:/FILE.db or none.
                                     With local: each user has his own, and root's is
                                     /var/lib/trinco: who works under sudo tells the server and
                                     root's mirror, other users' hear of it with their next call.
                                     A file in a folder that they can all write to is shared
  TRINCO_CONFIG        --config      a configuration file, which must exist ('trinco help config')
)"
#if TRINCO_CONSUL
    R"(  CONSUL_HTTP_TOKEN                  the ACL token for a Consul whose URL names none
  CONSUL_HTTP_TOKEN_FILE             the file whose one line it is. Of Consul's own variables these
                                     two count and no other: which Consul, and by which
                                     certificates, the URL says, not CONSUL_HTTP_ADDR
)"
#endif
    R"(  NO_COLOR, TERM=dumb                no colours, no moving display

Set for the command of 'trinco lock', and of 'trinco elect' while it leads:

  TRINCO_LOCK          the name of the lock
  TRINCO_TOKEN         its fencing token: larger than any before; hand it to what must not be
                       written by an old holder. Not set with --shared or -n
  TRINCO_LEASE         the lease that the lock is held under; on Consul the id of its session

Set for the command of 'trinco once':

  TRINCO_ONCE          the key
  TRINCO_RUN_ID        this run's id, an idempotency key for whoever the command talks to; the same
                       again when an interrupted run is run again
  TRINCO_ATTEMPT       1, 2, ...
  TRINCO_LEASE         as above

'trinco config show' says what holds, and where each value is from.
)";

constexpr std::string_view config =
    R"(Two files are read: /etc/trinco.toml and, above it, .config/trinco/trinco.toml in the user's
home, as the password database names it. With --config FILE or TRINCO_CONFIG only that file is read,
and it must exist. No file of the working directory counts: where a job runs must not decide where
its lock is kept. A variable counts more than a file ('trinco help environment'), an option more
than both.

  # TOML. All keys may be left out.
  instance = "rack-7"               # the failure domain; default: this machine

  [locks]
  store = "local:"                  # 'trinco help urls'
  prefix = ""                       # before the name of every lock
  ttl = "15s"                       # what is asked for without --ttl, in whole seconds

  [breakers]
  store = "local:"                  # or "redis://ann@redis.example"
  password_file = "/etc/trinco.pw"  # of the server's user: one line
  namespace = "default"
  mirror = "local:"                 # what 'trinco call' decides by while the server is away

  [breakers.policies.payments]      # how 'trinco call payments' decides
  failure_rate = "50%"              # or 0.5; any option of 'trinco help options'
  open_for = "10s"                  # durations are texts with a unit: "1h30m"
  timeout = "2s"                    # and of 'trinco call': timeout, grace, failure_exit,
  fallback = "cat last.json"        # ignore_exit, fallback, code_open, on_no_store

A key that is not known is a mistake, answered with its place and the nearest one that is.
What is wrong in a policy stops 'trinco call' of that breaker, but no lock.
'trinco config show' says what holds, and where each value is from.
)";

constexpr std::array<std::string_view, 6> topics = {"options",     "urls",       "config",
                                                    "environment", "exit-codes", "json"};

}  // namespace

std::span<const std::string_view> help_topics() {
    return topics;
}

std::string help_on_topic(std::string_view topic) {
    if (topic == "options") return help_options();
    if (topic == "json") return help_json();
    if (topic == "urls") return std::string(urls);
    if (topic == "config") return std::string(config);
    if (topic == "environment") return std::string(environment);
    if (topic == "exit-codes") return std::string(exit_codes);
    return {};
}

}  // namespace trinco::program
