#include <algorithm>
#include <array>

#include "apps/trinco/breakers/breakers_commands.hpp"
#include "apps/trinco/call/call_command.hpp"
#include "apps/trinco/command_line/command.hpp"
#include "apps/trinco/completion/completion_commands.hpp"
#include "apps/trinco/config/config_command.hpp"
#include "apps/trinco/demo/demo_commands.hpp"
#include "apps/trinco/demo/gateway_commands.hpp"
#include "apps/trinco/doctor/doctor_command.hpp"
#include "apps/trinco/elect/elect_command.hpp"
#include "apps/trinco/help/help_command.hpp"
#include "apps/trinco/lock/lock_command.hpp"
#include "apps/trinco/locks/locks_commands.hpp"
#include "apps/trinco/once/once_command.hpp"
#include "apps/trinco/records/records_commands.hpp"
#include "apps/trinco/setup_machine/setup_command.hpp"
#include "apps/trinco/version.hpp"

namespace trinco::program {
namespace {

constexpr bool runs_a_command = true;
constexpr bool runs_none = false;
constexpr bool listed = false;
constexpr bool hidden = true;

// name, verb, usage, summary, runs a command, hidden, make, examples, notes
constexpr command_entry entries[] = {
    // Verbs that run a command.
    {"lock", "", "lock NAME [options] -- COMMAND...", "runs a command while it holds a lock",
     runs_a_command, listed, make_lock_command,
     "lock nightly --no-wait -- backup /srv\nlock deploy/web --wait 30s --ttl 5s -- make deploy",
     "The command finds TRINCO_LOCK, TRINCO_LEASE and TRINCO_TOKEN in its environment (the last "
     "not with -n and --shared). The token grows with every grant of the lock: a resource that "
     "refuses lower ones than it has seen is safe from a holder that was paused beyond its time.\n"
     "When the lock is about to be lost (the store was away for too long, see --ttl; the machine "
     "was suspended) the command is stopped before that, and so is it when this program is killed "
     "or paused. Who is next has the lock of a killed one at once where it is kept by local:, on "
     "etcd when its TTL is over, and on Consul, which keeps no order among those who wait, after "
     "one to two TTLs and 5 s, since nobody is left who could give it back: 'trinco locks break "
     "NAME --force' does, once it is certain that the command is gone. What the command started "
     "and left behind is waited for, and holds the lock as long as it lives.\n"
     "A server that cannot be reached is tried as long as --wait says, for a second at least and "
     "5 s at most, and with --no-wait for 5 s unless nobody listens at any of its addresses; then "
     "this ends with 69. Who has been in the queue waits on in an outage, until --wait is over."},
    {"elect", "", "elect NAME [options] -- COMMAND...",
     "runs a command while it leads, and stands again when it does not", runs_a_command, listed,
     make_elect_command,
     "elect scheduler --value 10.0.0.7:8080 -- scheduler\nelect scheduler --observe",
     "Of all who stand for a name one leads, and the others wait in the order of their coming, on "
     "Consul in none. When the lead is about to be lost the command is stopped before another one "
     "can lead, as 'trinco lock' does it, and the program stands again; it ends when the command "
     "ends by itself, with its exit code. The command finds TRINCO_LOCK, TRINCO_LEASE and "
     "TRINCO_TOKEN in its environment; the token grows with every leader.\n"
     "A server that cannot be reached at the beginning is tried as long as --wait says, for a "
     "second at least and 5 s at most, and with --no-wait for 5 s unless nobody listens at any of "
     "its addresses; then this ends with 69.\n"
     "With --observe no command is run: a line for the leader and one for each change, also that "
     "there is none. On etcd these are the elections of 'etcdctl elect'; on Consul an election is "
     "the lock of 'consul lock', with the leader's value in its key. An election and a lock of one "
     "name are one."},
    {"call", "", "call BREAKER [options] -- COMMAND...",
     "runs a command behind a circuit breaker that all processes share", runs_a_command, listed,
     make_call_command,
     "call payments --timeout 2s -- curl -fsS https://payments.example/charge\n"
     "call rates --fallback 'cat /var/cache/rates.json' -- curl -fsS https://rates.example/today",
     "Failures are exit codes other than 0 (see --failure-exit, --ignore-exit), a crash and what "
     "ran out of its --timeout. INT, TERM, HUP, QUIT and a command that is not there count as "
     "nothing. The breaker opens when half of at least 5 calls within 5 minutes failed; then calls "
     "are refused (exit 75) until some of them, one after another, find out that it is well.\n"
     "Options of the breaker come from flags, else from [breakers.policies.BREAKER] of "
     "trinco.toml. "
     "A call with none of them takes those that govern the breaker already.\n"
     "A store that is a server may be away, or take no writes. What it said last is remembered on "
     "this machine (setting breakers.mirror), which then decides and counts by itself, or beside "
     "it, until all is well again; stderr says so. Users have mirrors of their own, unless the "
     "setting names a file that they share. Without any store the command runs unprotected; see "
     "--on-no-store."},
    {"once", "", "once KEY [options] -- COMMAND...",
     "runs a command once, whoever is asked to and however often", runs_a_command, listed,
     make_once_command,
     "once invoice/42 --keep 60d -- ./charge invoice-42.json\n"
     "once mail/2026-11 --keep 60d --fingerprint \"$(sha256sum < list)\" -- ./send-mails list",
     "What it wrote and how it ended is recorded, and is the answer for everybody who asks within "
     "--keep after its end: within a day, unless that says otherwise. Then it is forgotten, and "
     "the same key runs again: give --keep the longest time after which anybody may still retry, "
     "and a margin. Who asks while it runs waits. The command finds TRINCO_RUN_ID and "
     "TRINCO_ATTEMPT in its environment: hand the run id on as idempotency key.\n"
     "When the one that ran it dies in the middle nobody knows whether it was done: then every "
     "caller is told so (exit 79), until somebody says what became of it with 'trinco records "
     "resolve'. So it is with a command that is ended by a signal: this program ends with 128+n, "
     "and later callers are told. A command that itself exits with 128+n, as a shell does when "
     "what it started was killed, has failed like any other, and that is recorded.\n"
     "A server that cannot be reached is tried as long as --wait says, for a second at least and "
     "5 s at most, and with --wait 0s for 5 s unless nobody listens at any of its addresses; then "
     "this ends with 69."},

    // Nouns, with their verbs.
    {"breakers", "ls", "breakers ls [NAME|PREFIX*...] [options]", "lists circuit breakers",
     runs_none, listed, make_breakers_ls, "breakers ls\nbreakers ls 'pay*' -o json"},
    {"breakers", "show", "breakers show NAME [options]",
     "shows one: window, totals, options, instances", runs_none, listed, make_breakers_show,
     "breakers show payments\nbreakers show payments -o json"},
    {"breakers", "watch", "breakers watch [NAME|PREFIX*...] [options]",
     "prints every change, until interrupted", runs_none, listed, make_breakers_watch,
     "breakers watch\nbreakers watch payments -o json",
     "Says, too, when the store does not answer any more and when it does again; then what was "
     "missed follows. A line a change; -o json: an object a line ('trinco help json')."},
    {"breakers", "trip", "breakers trip NAME [options]", "opens one now; it recovers as usual",
     runs_none, listed, make_breakers_trip,
     "breakers trip payments --reason 'gateway restarts'\nbreakers trip payments --for 5min"},
    {"breakers", "reset", "breakers reset NAME [options]", "closes one now, with an empty window",
     runs_none, listed, make_breakers_reset,
     "breakers reset payments --reason 'gateway is back'\nbreakers reset payments"},
    {"breakers", "force-open", "breakers force-open NAME [options]",
     "refuses every call, for 24 h or --for", runs_none, listed, make_breakers_force_open,
     "breakers force-open payments --for 2h --reason 'maintenance until noon'\n"
     "breakers force-open payments"},
    {"breakers", "disable", "breakers disable NAME [options]",
     "lets every call through, for 24 h or --for", runs_none, listed, make_breakers_disable,
     "breakers disable payments --for 1h --reason 'it opens for no reason'\n"
     "breakers disable payments"},
    {"breakers", "observe", "breakers observe NAME [options]",
     "decides, but refuses nothing, for 24 h or --for", runs_none, listed, make_breakers_observe,
     "breakers observe payments --for 7d --reason 'trying a threshold'\n"
     "breakers observe payments"},
    {"breakers", "resume", "breakers resume NAME [options]", "ends force-open, disable and observe",
     runs_none, listed, make_breakers_resume,
     "breakers resume payments\nbreakers resume payments --reason 'maintenance is over'"},
    {"breakers", "set", "breakers set NAME KEY=VALUE... [options]",
     "changes options for all processes, while they run", runs_none, listed, make_breakers_set,
     "breakers set payments failure_rate=0.3 window=20s\n"
     "breakers set payments open_for=1min --for 2h",
     "There is no --reason: the store keeps of options what governs and until when, not who said "
     "so and why."},
    {"breakers", "unset", "breakers unset NAME [options]", "takes back what set has changed",
     runs_none, listed, make_breakers_unset,
     "breakers unset payments\nbreakers unset payments -o json"},
    {"breakers", "forget", "breakers forget NAME [options]",
     "begins one anew, as if it had never been used", runs_none, listed, make_breakers_forget,
     "breakers forget payments\n"
     "breakers forget old-name --confirm old-name --reason 'renamed'",
     "Closes it, and takes its totals, its override and what was set away. Asks before it acts, "
     "unless --confirm repeats the name.\n"
     "Something else than a breaker may live under its keys in Redis, and then nobody can use it: "
     "'trinco doctor' finds that, and --force removes it."},
    {"locks", "ls", "locks ls [NAME|PREFIX*] [options]", "lists locks, their holders and queues",
     runs_none, listed, make_locks_ls, "locks ls 'reports/*' -o json\nlocks ls --for 10s",
     "WAITERS and WAIT: how many wait for it, and how long the one has waited that waited longest; "
     "on Consul none is seen. Stores keep no history, so that --for finds out by looking, some "
     "twenty times a second:\n"
     "USED is the share of the looks in which somebody held it (of a semaphore, of its permits). A "
     "lock that is handed on and used more than 70 % makes its users slow: who comes finds a "
     "queue.\n"
     "P99-WAIT is what all but one of a hundred waited at most: of everybody who was seen, until "
     "the grant or so far, to about 50 ms."},
    {"locks", "show", "locks show NAME [options]",
     "shows who holds one, and who waits, in the order of the queue", runs_none, listed,
     make_locks_show, "locks show nightly\nlocks show nightly -o json",
     "On Consul who waits is not shown. Ends with 1 when nothing is there to be shown."},
    {"locks", "watch", "locks watch [NAME|PREFIX*] [options]",
     "prints every change, until interrupted", runs_none, listed, make_locks_watch,
     "locks watch\nlocks watch nightly -o json",
     "When the store does not answer it says so once, goes on, and says when it is back."},
    {"locks", "break", "locks break NAME [options]", "takes one back from its holder", runs_none,
     listed, make_locks_break,
     "locks break nightly --reason 'the host goes down'\n"
     "locks break nightly --force --confirm nightly",
     "Asks the holder to give it back, and waits until it has: 'trinco lock' ends its command and "
     "releases. When its TTL is over, or at once with --force, its entry is deleted; then it may "
     "still work, and what the lock protects should compare tokens. The answer says which it was.\n"
     "On etcd and Consul the leader of an election cannot be asked, and nor can another program "
     "that holds it ('etcdctl lock', 'consul lock', Go): --force deletes their entries. On Consul "
     "a holder that is dead is seen to be so only when its session ends, after one to two TTLs.\n"
     "Asks before it acts, unless --confirm repeats the name."},
    {"records", "ls", "records ls [KEY|PREFIX*] [options]",
     "lists what is to be done once, and how far it is", runs_none, listed, make_records_ls,
     "records ls\nrecords ls 'invoice/*' -o json"},
    {"records", "show", "records show KEY [options]", "shows one, with its result", runs_none,
     listed, make_records_show, "records show invoice/42\nrecords show invoice/42 -o json",
     "Ends with 1 when nothing is recorded."},
    {"records", "resolve", "records resolve KEY [options]",
     "says what became of one that was interrupted", runs_none, listed, make_records_resolve,
     "records resolve invoice/42 --done 'charge 7'\n"
     "records resolve invoice/42 --not-done --confirm invoice/42",
     "Interrupted means that its owner died while it ran, so that nobody here knows whether it was "
     "done: ask whoever does, by the run's id, and then say so. Until then every caller is told.\n"
     "Asks before it acts, unless --confirm repeats the key."},

    // Others.
    {"demo", "", "demo [options]", "sells the last ticket once, and stops calling what is dead",
     runs_none, listed, demo::make_demo, "demo\ndemo --locks etcd://127.0.0.1:2379",
     "Real processes on this machine, for less than a minute; nothing is needed, nothing is left. "
     "With --breakers the second act alone, its breaker shared through that server. With --locks "
     "those about locks, kept in that etcd, and, where an etcd can be started, what becomes of a "
     "lock when the leader of three nodes is killed. None is played on Consul.\n"
     "Exit code 0: everything that was to be seen was seen."},
    {"demo-sell", "", "demo-sell [options]", "a process of the demo", runs_none, hidden,
     demo::make_demo_sell},
    {"demo-service", "", "demo-service [options]", "a process of the demo", runs_none, hidden,
     demo::make_demo_service},
    {"demo-invoice", "", "demo-invoice [options]", "a process of the demo", runs_none, hidden,
     demo::make_demo_invoice},
    {"demo-hold", "", "demo-hold", "a process of the demo", runs_none, hidden,
     demo::make_demo_hold},
    {"demo-grants", "", "demo-grants", "a process of the demo", runs_none, hidden,
     demo::make_demo_grants},
    {"demo-gateway", "", "demo-gateway", "a process of the demo", runs_none, hidden,
     demo::make_demo_gateway},
    {"demo-caller", "", "demo-caller [options]", "a process of the demo", runs_none, hidden,
     demo::make_demo_caller},
    {"doctor", "", "doctor [options]", "looks at the stores, and says what to change", runs_none,
     listed, make_doctor, "doctor\ndoctor --breakers redis://127.0.0.1:6379 -o json",
     "Of Redis: each step of the way there, round trips, what each script costs, keys that are of "
     "a wrong type, version, eviction, "
     "persistence, replicas, rights, clock, Sentinels or cluster. Of etcd: members, leader, "
     "version, space, rights, round trips, and for how long it may be away unnoticed. Of Consul: "
     "leader, servers, datacenter, version, what ends the agent's sessions, connections, rights, "
     "round trips, TTLs, and for how long they may be away. Of local: its file, rights, file "
     "system and space. Nothing "
     "stays changed.\n"
     "Ends with 0 when nothing is bad; otherwise as the commands would that use the store: 69, 77 "
     "for rights, 64 for a URL. With --strict warnings alone end with 1."},
    {"config", "show", "config show [options]", "shows each setting in force and where it is from",
     runs_none, listed, make_config_show, "config show\nconfig show -o json --locks memory:"},
    {"setup", "", "setup --machine [options]", "makes one store for all users of this machine",
     runs_none, listed, make_setup, "setup --machine --dry-run\nsetup --machine",
     "Makes the group trinco and /var/lib/trinco, which is the group's, and names the store "
     "local:/var/lib/trinco/local.db in /etc/trinco.toml. Needs root, and may be repeated."},
    {"completion", "", "completion bash|zsh|fish", "prints the completion script of a shell",
     runs_none, listed, make_completion,
     "completion bash > ~/.local/share/bash-completion/completions/trinco\ncompletion zsh"},
    {"complete", "", "complete -- WORD...", "what may stand in place of the last word",
     runs_a_command, hidden, make_complete},
    {"version", "", "version [options]", "shows which version this is and how it was built",
     runs_none, listed, make_version, "version\nversion -o json"},
    {"help", "", "help [TOPIC|COMMAND [VERB]]", "explains a topic or a command", runs_none, listed,
     make_help, "help options\nhelp config show"},
};

}  // namespace

std::span<const command_entry> command_table() {
    return entries;
}

std::string called(const command_entry& entry) {
    std::string text(entry.name);
    if (!entry.verb.empty()) text += " " + std::string(entry.verb);
    return text;
}

const command_entry* find_command(std::string_view name, std::string_view verb) {
    for (const command_entry& entry : entries) {
        if (entry.name == name && (verb.empty() || entry.verb == verb)) return &entry;
    }
    return nullptr;
}

std::string_view noun_of(std::string_view word) {
    const auto is_noun = [](const command_entry& entry) { return !entry.verb.empty(); };
    const bool is_command = find_command(word) != nullptr;
    for (const command_entry& entry : entries) {
        if (!is_noun(entry)) continue;
        const bool singular = entry.name.size() == word.size() + 1 && entry.name.ends_with('s') &&
                              entry.name.starts_with(word);
        if (entry.name == word || (singular && !is_command)) return entry.name;
    }
    return {};
}

std::vector<std::string_view> verbs_of(std::string_view noun) {
    std::vector<std::string_view> verbs;
    for (const command_entry& entry : entries) {
        if (entry.name == noun && !entry.hidden && !entry.verb.empty()) verbs.push_back(entry.verb);
    }
    return verbs;
}

}  // namespace trinco::program
