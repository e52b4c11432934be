"""Every key has a time to live that covers the deadlines in it, also in quiet hours; after the
fleet is gone and that time has passed the database is empty; what a breaker takes does not grow
with outcomes, nor with instances that come and go.

Planted: `persist`, a key that somebody has made to last, and `remembered`, instances that are
remembered for longer than we look.
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
SOMETHING = 300  # bytes by which totals and times may be longer than they were
OUTCOMES = 10_000_000
FEW_OUTCOMES = 1_000_000
AT_LENGTH = 30   # s for each check, from which on all of them are made
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
    """At millions of calls a second."""
    server = scene.server
    fleet = scene.start([[('m%d' % n, 'v%d' % n, server.url()) for n in range(2)]],
                        dict(QUICK, minimum_calls=1000), ['many'], outside=False)
    tell(fleet, 'load * * inside 1000000 0.02')
    time.sleep(QUICK['window_ms'] / 1000 + 0.5)  # the window is full
    first = memory(server, 'many')
    before = sum(r['settled'] for r in reports(fleet))
    # A slow machine gets more time where all of them are wanted.
    wanted = OUTCOMES if seconds >= AT_LENGTH else FEW_OUTCOMES
    end = time.monotonic() + max(1, seconds / 2)
    while True:
        after = sum(r['settled'] for r in reports(fleet))
        late = time.monotonic() - end
        if late > 0 and (after - before >= wanted or late > 300):
            break
        time.sleep(0.2)
    last = memory(server, 'many')
    wrong = [] if last < 1.25 * first else ['from %d to %d bytes' % (first, last)]
    tell(fleet, 'load * * inside 0 0')
    return checkers.Verdict('B13', '%d bytes after %.1f million outcomes, %d after %.1f million'
                            % (first, before / 1e6, last, after / 1e6), after - before, wanted,
                            wrong)


def dumped(server, breaker):
    """Bytes of what is in the record, whatever tables the server keeps it in."""
    return len(server.call('DUMP', key_of(breaker)))


def crowd(scene, seconds, plant):
    """Processes that come, count one and go are forgotten one by one while others come."""
    server = scene.server
    many = SHORT_LIVED if seconds >= AT_LENGTH else SHORT_LIVED // 3
    options = dict(QUICK, live_for_ms=60000 if plant else 1000, window_ms=500, window_slices=5,
                   open_for_ms=30000, open_max_ms=30000)
    scene.start([[('stays', 'va', server.url())]], options, ['crowd'], outside=False)
    wait_for(lambda: scene.inspect('crowd').get('live') == 1, 5, 'it is heard')
    alone, dumped_alone = memory(server, 'crowd'), dumped(server, 'crowd')
    wrong, left_by, began = [], [], time.monotonic()
    for name in ('first', 'second'):
        subprocess.run([scene.child, 'crowd', server.url(), 'crowd', str(many), name],
                       check=True, stdout=subprocess.DEVNULL, timeout=300)
        with_them = memory(server, 'crowd')
        time.sleep(2.5)  # who stays is heard every live_for / 3, and tidies up
        left_by.append(memory(server, 'crowd'))
        in_record = dumped(server, 'crowd')
        if in_record > dumped_alone + SOMETHING:
            wrong.append('%d bytes are dumped after the %s crowd' % (in_record, name))
    counted = scene.inspect('crowd')['success']
    if left_by[0] > alone + many * FORGOTTEN:
        wrong.append('%d bytes before, %d afterwards' % (alone, left_by[0]))
    if left_by[1] > left_by[0] + SOMETHING:
        wrong.append('%d bytes after one crowd, %d after two' % tuple(left_by))
    if counted != 2 * many:
        wrong.append('%d of them were counted' % counted)
    says = ('twice %d processes in %.1f s: %d bytes before, %d with the last of them, %d after the '
            'first crowd, %d after the second; dumped %d before, %d at the end'
            % (many, time.monotonic() - began, alone, with_them, *left_by, dumped_alone,
               in_record))
    return checkers.Verdict('B13', says, counted, 1, wrong)


def check(child, seconds, seed, plant=None):
    def on_its_own(part):
        with Scene(child, seed) as scene:
            return part(scene)

    parts = {'persist': lambda scene: lives(scene, plant),
             'remembered': lambda scene: crowd(scene, seconds, plant)}
    if plant:
        return [on_its_own(parts[plant])]
    parts['outcomes'] = lambda scene: outcomes(scene, seconds)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(on_its_own, parts.values()))
