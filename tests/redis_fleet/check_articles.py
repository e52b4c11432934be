"""What introductions to the subject get wrong, beside what this library does in the same place on
the same server; docs/articles.md tells it. The script is naive.lua. Where the naive one is right
the check fails, too: then it compares nothing.
"""

import os
import shutil
import subprocess
import time

import checkers
from fleet import QUICK, Process, Scene, all_in, reports, tell, wait_for
from servers import Client

THRESHOLD = 5
COOLDOWN = 1.0  # s
# The script's behaviour, corrected: any instance may open it, by the number of failures alone, and
# every call asks.
LIKE_IT = dict(QUICK, quorum=1, failure_count=THRESHOLD, consistency='strict', failure_rate=1,
               minimum_calls=1000000, open_for_ms=int(COOLDOWN * 1000), jitter=0,
               window_ms=10000, live_for_ms=10000)
PROCESSES = 50
REPORTS = 20  # of each


class Naive:
    def __init__(self, server):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, 'naive.lua'), encoding='ascii') as f:
            self.script = f.read()
        self.server = server
        self.key = 'naive'

    def ask(self, clock_ahead=0.0):
        return self.server.call('EVAL', self.script, 1, self.key, THRESHOLD, COOLDOWN,
                                '%.3f' % (time.time() + clock_ahead)).decode()


class Comparison:
    """What the naive one does wrong, and ours right."""

    def __init__(self, what, naive, ours, naive_is_wrong, ours_is_right):
        self.what, self.naive, self.ours = what, naive, ours
        self.naive_is_wrong, self.ours_is_right = naive_is_wrong, ours_is_right

    def verdict(self):
        wrong = []
        if not self.naive_is_wrong:
            wrong.append('the naive one does what it should: ' + self.naive)
        if not self.ours_is_right:
            wrong.append('ours does not')
        return checkers.Verdict('art', '%s: naive %s; ours %s' % (self.what, self.naive, self.ours),
                                1, 1, wrong)


def start(scene, breaker, voters=('va', 'vb')):
    url = scene.server.url()
    return scene.start([[('%s-%s' % (breaker, v), v, url) for v in voters]], LIKE_IT, [breaker])


def successes(scene):
    naive = Naive(scene.server)
    answers = [naive.ask() for _ in range(2 * THRESHOLD)]  # each of these calls succeeds
    fleet = start(scene, 'good')
    tell(fleet, 'burst * good %d' % (20 * THRESHOLD))
    for _ in range(2):
        fleet[0].answer('burst')
    time.sleep(0.3)
    state = reports(fleet)[0]['state']
    return Comparison('successes only', 'is %s after %d of them' % (answers[-1], len(answers)),
                      'is %s after %d' % (state, 40 * THRESHOLD), answers[-1] == 'open',
                      state == 'closed')


def half_open(scene):
    """Everybody comes at once when the time is over; and then it never ends."""
    naive = Naive(scene.server)
    naive.key = 'naive-half'
    while naive.ask() != 'open':
        pass
    time.sleep(COOLDOWN + 0.05)
    answers = [naive.ask() for _ in range(100)]  # and all of these calls succeed
    through = sum(a != 'open' for a in answers)

    dependency = scene.dependency
    fleet = start(scene, 'half')
    dependency.failing['half'] = 1
    tell(fleet, 'load * * outside 100')
    wait_for(lambda: all_in(fleet, 'half', 'open', 'fleet'), 5, 'it opens')
    dependency.failing['half'] = 0
    dependency.takes = (0.05, 0.06)
    before = len(dependency.calls)
    wait_for(lambda: all_in(fleet, 'half', 'closed', 'fleet'), 5, 'half-open ends')
    probes = sum(c.kind == 'fleet' for c in dependency.calls[before:])
    tell(fleet, 'load * * inside 0 0')
    return Comparison('half-open',
                      'lets %d of 100 through, and is %s then' % (through, answers[-1]),
                      'lets %d through, and is closed then' % probes,
                      through == 100 and answers[-1] == 'half_open',
                      0 < probes <= LIKE_IT['half_open_probes'])


def clocks(scene):
    """One machine's clock is an hour ahead."""
    naive = Naive(scene.server)
    naive.key = 'naive-clock'
    while naive.ask() != 'open':
        pass
    early = naive.ask(clock_ahead=3600)

    fleet = start(scene, 'clock')
    scene.dependency.failing['clock'] = 1
    tell(fleet, 'load * * outside 100')
    wait_for(lambda: all_in(fleet, 'clock', 'open', 'fleet'), 5, 'it opens')
    began = time.monotonic()
    tell(fleet, 'load * * inside 0 0')
    says = 'is not asked for a clock'
    is_right = True
    if in_other_time():
        ahead = ahead_of(scene)
        ahead.say('load * * outside 100')
        wait_for(lambda: all_in([ahead], 'clock', 'open', 'fleet'), 3, 'the newcomer knows it')
        calls = len(scene.dependency.calls)
        time.sleep(max(0, began + 0.8 * COOLDOWN - time.monotonic()))
        is_right = len(scene.dependency.calls) == calls
        says = 'lets it wait like all others'
        ahead.kill()
    return Comparison('a clock that is ahead', 'is %s to it at once' % early, says,
                      early == 'half_open', is_right)


def in_other_time():
    """Whether processes can have other clocks here: a time namespace needs rights."""
    if shutil.which('unshare') is None:
        return False
    return subprocess.run(['unshare', '-T', '--monotonic', '3600', '--boottime', '3600', '-f',
                           'true'], stderr=subprocess.DEVNULL, check=False).returncode == 0


def ahead_of(scene):
    """An instance whose clocks are an hour ahead."""
    child = os.path.join(scene.folder, 'ahead')
    with open(child, 'w', encoding='ascii') as f:
        f.write('#!/bin/sh\nexec unshare -T --monotonic 3600 --boottime 3600 -f --kill-child '
                '%s "$@"\n' % scene.child)
    os.chmod(child, 0o755)
    ours, scene.child = scene.child, child
    try:
        return Process(scene, [('ahead', 'vc', scene.server.url())], LIKE_IT, ['clock']).ready()
    finally:
        scene.child = ours


def lost_counts(scene):
    """So many processes count at the same time."""
    children = []
    for _ in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            try:
                client = Client(scene.server.path)
                for _ in range(REPORTS):
                    client.call('SET', 'sum', int(client.call('GET', 'sum') or 0) + 1)
            finally:
                os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    naive = int(scene.server.call('GET', 'sum'))

    counters = [subprocess.Popen([scene.child, 'count', scene.server.url(), 'n%d' % n, 'n%d' % n,
                                  'many', str(REPORTS)], stdout=subprocess.PIPE, text=True)
                for n in range(PROCESSES)]
    given = sum(int(c.communicate()[0].split()[-1]) for c in counters)
    counted = scene.inspect('many')['success']
    return Comparison('%d processes' % PROCESSES, 'counts %d of %d with GET and SET'
                      % (naive, PROCESSES * REPORTS), 'counts %d of %d' % (counted, given),
                      naive < PROCESSES * REPORTS, counted == given)


def check(child, seconds, seed, plant=None):
    del seconds, plant
    with Scene(child, seed) as scene:
        found = [successes(scene), half_open(scene), clocks(scene), lost_counts(scene)]
        return [c.verdict() for c in found]
