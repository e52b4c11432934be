"""What Redis has to do does not depend on how often breakers are called: commands a second at a
thousand and at a million calls a second of each instance, at 0 %, 1 % and 30 % failures; and a call
that is decided from what is known makes no round trip, closed or open.

Planted: `budget`, which compares with half of the commands.
"""

import concurrent.futures
import time

import checkers
from fleet import QUICK, Scene, all_in, reports, tell, wait_for

OPTIONS = dict(QUICK, minimum_calls=500, window_ms=10000, sync_interval_ms=100, live_for_ms=60000,
               open_for_ms=60000, open_max_ms=60000, store_timeout_ms=300, degraded_after_ms=2000)
RATES = (1000, 1_000_000)
SHARES = (0, 0.01, 0.3)
MADE = 0.4   # of the calls that are asked for: the machine may be busy
TRIES = 5    # because it is, to see that many

def commands(server):
    """That came over the wire, but for our own INFO: what a script calls is not counted."""
    found = server.commands()
    return sum(found.get(name, 0) for name in ('evalsha', 'evalsha_ro', 'eval', 'eval_ro', 'ping'))


def measured(scene, fleet, seconds):
    """Commands and decisions a second."""
    reports(fleet)
    before, began = commands(scene.server), time.monotonic()
    time.sleep(seconds)
    after, lasted = commands(scene.server), time.monotonic() - began
    found = reports(fleet)
    decisions = sum(r['admitted'] + r['refused_open'] + r['refused_waiting'] for r in found)
    return (after - before) / lasted, decisions / lasted, found


def of_share(child, seed, share, seconds, tolerance):
    with Scene(child, seed) as scene:
        url = scene.server.url()
        fleet = scene.start([[('a', 'va', url), ('b', 'vb', url)]], OPTIONS, ['dep'], outside=False)
        tell(fleet, 'load * * inside %d %g' % (RATES[0], share))
        time.sleep(1)  # the window is warm
        seen = []
        for rate in RATES:
            tell(fleet, 'load * * inside %d %g' % (rate, share))
            time.sleep(0.5)
            for _ in range(TRIES):
                rates = measured(scene, fleet, seconds)
                if rates[1] >= MADE * rate * 2:
                    break
            seen.append(rates)
        wrong = []
        if any(r['state'] != 'closed' or r['degraded'] for r in seen[-1][2]):
            wrong.append('it is not closed any more')
        for rate, (_, decisions, _) in zip(RATES, seen):
            if decisions < MADE * rate * 2:
                wrong.append('only %d calls were made a second' % decisions)
        (few, calls_few, _), (many, calls_many, _) = seen
        # A busy machine makes round trips slow, and instances speak less often then.
        by_the_clock = 2 * 1000 / OPTIONS['sync_interval_ms']
        if many > tolerance * max(few, by_the_clock) + 5:
            wrong.append('%.0f commands a second became %.0f' % (few, many))
        says = ('%g %% failures: %.0f commands a second at %.0f calls, %.0f at %.0f'
                % (100 * share, few, calls_few, many, calls_many))
        return checkers.Verdict('cost', says, int(calls_many), 1000, wrong)


def of_open(child, seed, seconds):
    """Open: nothing but what each instance says now and then (live_for / 3)."""
    with Scene(child, seed) as scene:
        url = scene.server.url()
        fleet = scene.start([[('a', 'va', url), ('b', 'vb', url)]], OPTIONS, ['dep'], outside=False)
        tell(fleet, 'load * * inside 1000 1')
        wait_for(lambda: all_in(fleet, 'dep', 'open', 'fleet'), 5, 'it opens')
        tell(fleet, 'load * * inside 1000000 1')
        time.sleep(1)
        rate, decisions, found = measured(scene, fleet, seconds)
        # Refusals are counted, and counts are told at the pace of all others.
        wrong = [] if rate <= 25 else ['%.0f commands a second while open' % rate]
        if any(r['admitted'] for r in found):
            wrong.append('calls were admitted')
        return checkers.Verdict('cost', 'open: %.1f commands a second at %.0f calls'
                                % (rate, decisions), int(decisions), 1000, wrong)


def of_bursts(child, seed):
    """A million calls at once, closed: the commands during it are those of the clock."""
    with Scene(child, seed) as scene:
        url = scene.server.url()
        fleet = scene.start([[('a', 'va', url)]], OPTIONS, ['dep'], outside=False)
        tell(fleet, 'burst a dep 1000')
        fleet[0].answer('burst')
        time.sleep(0.5)
        before, began = commands(scene.server), time.monotonic()
        tell(fleet, 'burst a dep 1000000')
        fleet[0].answer('burst')
        lasted = time.monotonic() - began
        spent = commands(scene.server) - before
        allowed = 3 + 12 * lasted
        wrong = [] if spent <= allowed else ['%d commands in %.3f s' % (spent, lasted)]
        return checkers.Verdict('cost', '1,000,000 calls in %.3f s: %d commands' % (lasted, spent),
                                1_000_000, 1, wrong)


def of_connections(child, seed):
    """Of a process, however many breakers it has: one for commands, one that listens."""
    breakers = ['dep%d' % n for n in range(20)]
    with Scene(child, seed) as scene:
        server = scene.server
        ours = connections(server)
        fleet = scene.start([[(name, name, server.url())] for name in 'abc'], OPTIONS, breakers,
                            outside=False)
        tell(fleet, 'load * * inside 1000 0.02')
        wait_for(lambda: all(r['live'] == len(fleet) for r in reports(fleet)), 40, 'all are heard')
        theirs = [one for one in connections(server) if one not in ours]
        listening = sum('sub=0' not in one for one in theirs)
        wrong = []
        if len(theirs) != 2 * len(fleet) or listening != len(fleet):
            wrong.append('%d connections, %d of which listen' % (len(theirs), listening))
        return checkers.Verdict('cost', '%d connections of %d processes with %d breakers each'
                                % (len(theirs), len(fleet), len(breakers)), len(theirs), 1, wrong)


def connections(server):
    """Each as its number and what it listens to."""
    return [' '.join(word for word in line.split() if word.startswith(('id=', 'sub=')))
            for line in server.call('CLIENT', 'LIST').decode().splitlines()]


def check(child, seconds, seed, plant=None):
    tolerance = 0.3 if plant == 'budget' else 1.3
    each = max(1.5, seconds / 3)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [pool.submit(of_share, child, seed, share, each, tolerance) for share in SHARES]
        found += [pool.submit(of_open, child, seed, each), pool.submit(of_bursts, child, seed),
                  pool.submit(of_connections, child, seed)]
        return [f.result() for f in found]
