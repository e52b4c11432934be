"""Judges what was seen in the torture. Each checker is a function from events to a verdict, and
fails as well when it has seen too little to prove anything.

The names are those of the project's list of invariants, see GUARANTEES.md.
"""

import collections
import dataclasses

SHOWN = 5  # violations of one kind that are told


@dataclasses.dataclass(frozen=True)
class Access:
    """At the resource that checks tokens, in its order."""
    name: str
    token: int
    accepted: bool
    value: int = -1  # that a write left behind; -1: it read


@dataclasses.dataclass(frozen=True)
class Grant:
    name: str
    token: int
    asked: int     # microseconds, before the lock was asked for
    received: int  # after the holder had it


@dataclasses.dataclass(frozen=True)
class Orphan:
    """What had to end with its wrapper, guardian or lease."""
    why: str
    since: int
    planned: int  # until when it would have lived by itself
    bound: int    # until when it may have lived
    ended: int    # when the last of it was gone


@dataclasses.dataclass(frozen=True)
class Call:
    """At the dependency."""
    breaker: str
    is_fleet_probe: bool
    expires: int  # of the probe's lease, at the earliest
    arrived: int
    left: int


@dataclasses.dataclass
class Verdict:
    name: str
    says: str
    evidence: int
    wanted: int
    violations: list

    def failed(self):
        return bool(self.violations) or self.evidence < self.wanted

    def text(self):
        line = '%-3s %s: %s' % (self.name, 'FAILED' if self.failed() else 'holds', self.says)
        if self.evidence < self.wanted:
            line += '; that is too little to prove anything, %d are wanted' % self.wanted
        for one in self.violations[:SHOWN]:
            line += '\n      ' + one
        if len(self.violations) > SHOWN:
            line += '\n      and %d more' % (len(self.violations) - SHOWN)
        return line


def tokens_at_the_resource(accesses, wanted=1):
    """L1: accepted tokens never decrease."""
    highest, violations, changes = {}, [], 0
    for a in accesses:
        if not a.accepted:
            continue
        before = highest.get(a.name, 0)
        if a.token < before:
            violations.append('%s: token %d was accepted after %d' % (a.name, a.token, before))
        if a.token > before:
            changes += 1
        highest[a.name] = max(before, a.token)
    refused = sum(not a.accepted for a in accesses)
    return Verdict('L1', '%d changes of holder at the resource, %d accesses, %d stale ones kept out'
                   % (changes, len(accesses), refused), changes, wanted, violations)


def stale_work(shadow_stale, wanted=0):
    """L1, the other side: without the check stale writers come through. By libraries that were
    paused: evidence. By a command under `trinco lock`: its guardian let it live too long."""
    violations = ['%d writes of commands under trinco lock came after the next grant'
                  % shadow_stale['command']] if shadow_stale['command'] else []
    return Verdict('L1+', '%d stale writes reached the resource that does not check, by paused '
                   'processes of the library; %d by commands under trinco lock'
                   % (shadow_stale['library'], shadow_stale['command']),
                   shadow_stale['library'], wanted, violations)


def tokens_of_grants(grants, wanted=1):
    """L2: no token twice; who asked after another was granted has a higher one."""
    violations, pairs = [], 0
    by_name = collections.defaultdict(list)
    for g in grants:
        by_name[g.name].append(g)
    for name, all_of_name in sorted(by_name.items()):
        for token, n in collections.Counter(g.token for g in all_of_name).items():
            if n > 1:
                violations.append('%s: token %d was granted %d times' % (name, token, n))
        received = sorted(all_of_name, key=lambda g: g.received)
        at, highest = 0, 0
        for g in sorted(all_of_name, key=lambda g: g.asked):
            while at < len(received) and received[at].received < g.asked:
                highest = max(highest, received[at].token)
                at += 1
            pairs += at > 0
            if g.token <= highest:
                violations.append('%s: token %d was granted to who asked after %d was granted'
                                  % (name, g.token, highest))
    return Verdict('L2', '%d grants of %d names' % (len(grants), len(by_name)), pairs, wanted,
                   violations)


def increments(accesses, finals, wanted=1):
    """L4: through the resource that checks tokens no increment is lost."""
    value, violations, writes = collections.Counter(), [], 0
    for a in accesses:
        if not a.accepted or a.value < 0:
            continue
        writes += 1
        if a.value != value[a.name] + 1:
            violations.append('%s: %d was written over %d' % (a.name, a.value, value[a.name]))
        value[a.name] = a.value
    accepted = collections.Counter(a.name for a in accesses if a.accepted and a.value >= 0)
    for name, last in sorted(finals.items()):
        if last != accepted[name]:
            violations.append('%s: %d increments were acknowledged, %d are there'
                              % (name, accepted[name], last))
    return Verdict('L4', '%d acknowledged increments' % writes, writes, wanted, violations)


def orphans(cases, wanted=1, stalls=()):
    """L6: nothing of a command lives on when wrapper, guardian or lease are gone. `stalls`: from
    when to when the whole machine did not run anybody, us included."""
    def late(c):
        stalled = sum(max(0, min(c.ended, end) - max(c.since, begin)) for begin, end in stalls)
        return c.ended - c.bound - stalled

    violations = ['%s: the last of it was gone %.0f ms too late' % (c.why, late(c) / 1000)
                  for c in cases if late(c) > 0]
    telling = [c for c in cases if c.planned > c.bound]
    kinds = collections.Counter(c.why for c in telling)
    longest = {why: max(late(c) for c in telling if c.why == why) for why in kinds}
    return Verdict('L6', '%d of %d cases would have lived on (%s)%s'
                   % (len(telling), len(cases),
                      ', '.join('%s %d, at the latest %.0f ms before its bound'
                                % (why, n, -longest[why] / 1000)
                                for why, n in sorted(kinds.items())),
                      '; the machine stood still for %.1f s in all'
                      % (sum(end - begin for begin, end in stalls) / 1e6) if stalls else ''),
                   len(telling), wanted, violations)


def leftovers(found, deaths, wanted=1):
    """L9: when all is over nothing is left."""
    violations = ['%d %s are left' % (n, what) for what, n in sorted(found.items()) if n]
    return Verdict('L9', 'after %d deaths: %s' % (deaths, ', '.join(sorted(found))), deaths,
                   wanted, violations)


def probes(calls, most, wanted=1):
    """B1: never more than `most` unexpired probes of a fleet at once, counted at the dependency."""
    violations, seen, together = [], 0, 0
    by_breaker = collections.defaultdict(list)
    for c in calls:
        if c.is_fleet_probe:
            by_breaker[c.breaker].append(c)
    for name, all_of_name in sorted(by_breaker.items()):
        steps = []
        for c in all_of_name:
            seen += 1
            until = min(c.left, c.expires)
            if until > c.arrived:
                steps += [(c.arrived, 1), (until, -1)]
        running = 0
        for at, step in sorted(steps):
            running += step
            together = max(together, running)
            if running > most and step > 0:
                violations.append('%s: %d probes at once at %d us' % (name, running, at))
    return Verdict('B1', '%d probes, at most %d at once of %d allowed' % (seen, together, most),
                   seen, wanted, violations)


def counted(acknowledged, unknown, in_store, wanted=1):
    """B5: what was acknowledged is what the store has, but for the last report of the killed."""
    low = sum(acknowledged.values())
    high = low + unknown
    violations = []
    if not low <= in_store <= high:
        violations.append('%d reports were acknowledged, %d more may be, the store counts %d'
                          % (low, unknown, in_store))
    return Verdict('B5', '%d acknowledged reports of %d instances, %d in the store, %d unknown'
                   % (low, len(acknowledged), in_store, unknown), low, wanted, violations)


def counted_by_registries(clean, begun, in_store, wanted=1):
    """B5 for whole processes: all outcomes of those that closed, at most those that were begun."""
    violations = []
    if not clean <= in_store <= begun:
        violations.append('processes that closed gave %d outcomes, all together began %d, the '
                          'store counts %d' % (clean, begun, in_store))
    return Verdict('B5+', '%d outcomes of processes that closed, %d begun, %d in the store'
                   % (clean, begun, in_store), clean, wanted, violations)


def manners(endings, allowed):
    """How processes ended that nobody had killed: with a code that means something."""
    violations, seen = [], 0
    for (kind, code), n in sorted(endings.items()):
        seen += n
        if code not in allowed[kind]:
            violations.append('%d times %s ended with %d' % (n, kind, code))
    return Verdict('end', '%d processes ended' % seen, seen, 1, violations)


def growth(health, wanted=2):
    """The process that lives through it all does not grow: descriptors and memory."""
    if len(health) < wanted:
        return Verdict('fds', 'the process that lives long was not heard', len(health), wanted, [])
    # What it needs it has after the first quarter.
    settled = health[len(health) // 4:]
    first, last = settled[0], settled[-1]
    violations = []
    if last[0] > first[0] + 4:
        violations.append('from %d to %d descriptors' % (first[0], last[0]))
    if last[1] > first[1] + 16 * 1024 * 1024:
        violations.append('from %d to %d KiB' % (first[1] // 1024, last[1] // 1024))
    return Verdict('fds', 'the process that lives long: %d, then %d descriptors; %d, then %d KiB'
                   % (first[0], last[0], first[1] // 1024, last[1] // 1024), len(health), wanted,
                   violations)
