"""Every key has a time to live that covers the deadlines in it, also in quiet hours; after the
fleet is gone and that time has passed the database is empty; what a breaker takes does not grow
with outcomes, nor with instances that come and go.

Planted: `persist`, a key that somebody has made to last.
"""

import concurrent.futures
import subprocess
import time

import checkers
from fleet import QUICK, Scene, all_in, reports, tell, wait_for

KEY_TTL = 1.5   # s
OPTIONS = dict(QUICK, key_ttl_ms=int(KEY_TTL * 1000), live_for_ms=1000, open_for_ms=3000,
               open_max_ms=3000, jitter=0, probe_timeout_ms=500)
OVERRIDE = 4.0  # s
SHORT_LIVED = 1000
FORGOTTEN = 30   # bytes that may be left of each: tables that were large once
SLACK = 0.3


def key_of(breaker):
    return 'trinco:1:default:{%s}' % breaker


def left(server, key):
    """Seconds; -1: for ever, -2: there is none."""
    ms = server.call('PTTL', key)
    return ms / 1000 if ms >= 0 else ms


def lives(scene, plant):
    server, wrong = scene.server, []
    url = server.url()
    fleet = scene.start([[('a', 'va', url)], [('b', 'vb', url)]], OPTIONS,
                        ['opens', 'over', 'well'], outside=False)
    tell(fleet, 'load * well inside 100 0.01')
    tell(fleet, 'load * opens inside 100 1')
    wait_for(lambda: all_in(fleet, 'opens', 'open', 'fleet'), 5, 'it opens')
    fleet[0].say('force a over %d' % (OVERRIDE * 1000))
    fleet[0].answer('forced')
    forced = time.monotonic()
    tell(fleet, 'load * * inside 0 0')
    deadlines = {'opens': forced + OPTIONS['open_for_ms'] / 1000 - 0.5, 'over': forced + OVERRIDE}
    time.sleep(0.2)
    before = server.keys()
    for key in before:
        if left(server, key) < 0:
            wrong.append('%s lives for ever' % key)
    for p in fleet:
        p.kill()
    gone = time.monotonic()
    if plant == 'persist':
        server.call('PERSIST', key_of('well'))
    for name, deadline in deadlines.items():
        covered = left(server, key_of(name)) - (deadline - time.monotonic())
        if covered < 0:
            wrong.append('%s is gone %.1f s before its deadline' % (name, -covered))
    # Quiet hours: nobody is there, and the override is over only when it is over.
    time.sleep(max(0, deadlines['over'] - SLACK - time.monotonic()))
    if not server.call('EXISTS', key_of('over')):
        wrong.append('the override did not outlive the quiet')
    if server.call('EXISTS', key_of('well')) and plant != 'persist':
        wrong.append('well is still there')
    limit = OVERRIDE + KEY_TTL + 1
    try:
        wait_for(lambda: server.call('DBSIZE') == 0, limit, 'the database is empty')
    except AssertionError as error:
        wrong.append('%s: %s' % (error, server.keys()))
    return checkers.Verdict('B13', '%d keys of three breakers; %.1f s after the fleet all are gone'
                            % (len(before), time.monotonic() - gone), len(before), 9, wrong)


def memory(server, breaker):
    """Bytes of a breaker's keys, but for what the server's hash tables have in reserve."""
    keys = [k for k in server.keys() if k.startswith(key_of(breaker))]
    return sum(server.call('MEMORY', 'USAGE', k, 'SAMPLES', 0) for k in keys)


def outcomes(scene, seconds):
    """At a million calls a second."""
    server = scene.server
    fleet = scene.start([[('m%d' % n, 'v%d' % n, server.url()) for n in range(2)]],
                        dict(QUICK, minimum_calls=1000), ['many'], outside=False)
    tell(fleet, 'load * * inside 1000000 0.02')
    time.sleep(QUICK['window_ms'] / 1000 + 0.5)  # the window is full
    first = memory(server, 'many')
    before = sum(r['settled'] for r in reports(fleet))
    time.sleep(max(1, seconds / 2))
    after = sum(r['settled'] for r in reports(fleet))
    last = memory(server, 'many')
    wrong = [] if last < 1.25 * first else ['from %d to %d bytes' % (first, last)]
    tell(fleet, 'load * * inside 0 0')
    return checkers.Verdict('B13', '%d bytes after %.1f million outcomes, %d after %.1f million'
                            % (first, before / 1e6, last, after / 1e6), after - before, 100_000,
                            wrong)


def crowd(scene):
    """Instances that come, count one and go are forgotten one by one while others come."""
    server = scene.server
    options = dict(QUICK, live_for_ms=1000, window_ms=500, window_slices=5, open_for_ms=30000,
                   open_max_ms=30000)
    scene.start([[('stays', 'va', server.url())]], options, ['crowd'], outside=False)
    wait_for(lambda: scene.inspect('crowd').get('live') == 1, 5, 'it is heard')
    alone = memory(server, 'crowd')
    began = time.monotonic()
    subprocess.run([scene.child, 'crowd', server.url(), 'crowd', str(SHORT_LIVED)], check=True,
                   stdout=subprocess.DEVNULL, timeout=120)
    lasted, right_after = time.monotonic() - began, memory(server, 'crowd')
    time.sleep(1.5)  # who stays is heard every live_for / 3, and tidies up
    last = memory(server, 'crowd')
    counted = scene.inspect('crowd')['success']
    wrong = []
    if last > alone + SHORT_LIVED * FORGOTTEN:
        wrong.append('%d bytes before, %d afterwards' % (alone, last))
    if counted != SHORT_LIVED:
        wrong.append('%d of them were counted' % counted)
    says = ('%d instances in %.1f s: %d bytes before, %d with the last of them, %d a second later'
            % (SHORT_LIVED, lasted, alone, right_after, last))
    return checkers.Verdict('B13', says, counted, 1, wrong)


def check(child, seconds, seed, plant=None):
    def on_its_own(part):
        with Scene(child, seed) as scene:
            return part(scene)

    parts = [lambda scene: lives(scene, plant)]
    if plant is None:
        parts += [lambda scene: outcomes(scene, seconds), crowd]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(on_its_own, parts))
