"""Redis dies while the fleet is open, or half open, and the dependency is still down: no herd calls
it, each instance tries it alone and gently, and when it is well again all of them close without
Redis. When Redis is back the fleet's breaker is what it was, open, until probes have shown that it
need not be: as soon as leases of the server from before can exist no more. Meanwhile those who have
closed by themselves go on calling.

Planted: `limits`, a twentieth of what is allowed.
"""

import concurrent.futures
import time

import checkers
from fleet import QUICK, Scene, all_in, events, now, reports, tell, wait_for

INSTANCES = 4
PROBES = 4
OPEN_FOR = 0.4   # s
OPTIONS = dict(QUICK, open_for_ms=int(OPEN_FOR * 1000), open_max_ms=1000, open_backoff=1.5,
               half_open_probes=PROBES, window_ms=1000, live_for_ms=10000)
RATE = 150       # calls a second that each instance wants to make
DOWN = 2.4       # s without Redis
BREAKER = 'dep'


def most_at_once(calls):
    steps = sorted([(c.arrived, 1) for c in calls] + [(c.left or now(), -1) for c in calls])
    running = most = 0
    for _, step in steps:
        running += step
        most = max(most, running)
    return most


def judge_return(scene, fleet, wrong):
    """How many seconds after it the fleet's breaker closed."""
    scene.server.restart()
    back = now()
    wait_for(lambda: not any(r['degraded'] for r in reports(fleet)), 5, 'all are back')
    calls = len(scene.dependency.calls)
    limit = OPTIONS['probe_timeout_ms'] / 1000 + 2
    wait_for(lambda: all_in(fleet, BREAKER, 'closed', 'fleet') and all_in(fleet, BREAKER, 'closed'),
             limit, 'the fleet closes again')
    took = (now() - back) / 1e6
    told = events(fleet, BREAKER, 'state_changed', back)
    if told:
        wrong.append('they did not stay closed when Redis was back: %s' % told)
    probes = [c for c in scene.dependency.calls[calls:] if c.kind == 'fleet']
    if len(probes) > 2 * PROBES:
        wrong.append('%d probes were needed when Redis was back' % len(probes))
    return took


def die_while(child, seed, state, share):
    """The state in which it dies; `share` of the limit is allowed."""
    with Scene(child, seed) as scene:
        dependency, url = scene.dependency, scene.server.url()
        dependency.takes = (0.01, 0.03)
        fleet = scene.start([[('a', 'va', url), ('b', 'vb', url)],
                             [('c', 'vc', url), ('d', 'vd', url)]], OPTIONS, [BREAKER], threads=2)
        tell(fleet, 'load * * outside %d' % RATE)
        wait_for(lambda: all(r['live'] == INSTANCES for r in reports(fleet)), 5, 'they are heard')
        dependency.failing[BREAKER] = 1
        wait_for(lambda: all_in(fleet, BREAKER, 'open', 'fleet'), 5, 'the fleet opens')
        if state == 'half open':
            dependency.hanging[BREAKER], dependency.hangs = 1, 0.3
            wait_for(lambda: any(c.kind == 'fleet' for c in dependency.calls), 5, 'a probe')
        scene.server.kill()
        died = now()
        time.sleep(0.1)  # who was waiting for an answer has given up
        dependency.hanging[BREAKER] = 0
        time.sleep(DOWN - 0.1)
        calls = [c for c in list(dependency.calls) if c.arrived > died]
        wrong = []
        # Each may try once an opening, of which there are at most four, as they become longer; and
        # what was under way.
        allowed = share * (4 * INSTANCES + PROBES)
        if len(calls) > allowed:
            wrong.append('%d calls in %.1f s, %d are allowed' % (len(calls), DOWN, allowed))
        together = most_at_once(calls)
        if together > share * (INSTANCES + PROBES):
            wrong.append('%d calls at once' % together)
        if any(r['state'] == 'closed' for r in reports(fleet)):
            wrong.append('closed before the dependency was well')
        dependency.failing[BREAKER] = 0
        wait_for(lambda: all_in(fleet, BREAKER, 'closed'), 6, 'all close without Redis')
        took = judge_return(scene, fleet, wrong)
        says = ('Redis died while %s: %d calls in %.1f s (%d were wanted), at most %d at once'
                % (state, len(calls), DOWN, DOWN * RATE * INSTANCES, together))
        says += '; when it was back none stopped calling, and the fleet closed after %.2f s' % took
        return checkers.Verdict('B9+', says, len(calls), INSTANCES // 2, wrong)


def check(child, seconds, seed, plant=None):
    del seconds
    share = 0.05 if plant == 'limits' else 1
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda state: die_while(child, seed, state, share),
                             ('open', 'half open')))
