"""One bad instance of two, of three and of ten (all its calls fail, the others' succeed), also when
half of all calls are its own, neither opens the fleet nor keeps it open through half-open; its own
breaker is open. Sixteen bad processes of one machine are one voter. A dependency that fails for all
opens for everybody.

Planted: `quorum`, of one: whoever fails opens it for all.
"""

import concurrent.futures
import time

import checkers
from fleet import QUICK, Scene, all_in, reports, tell, wait_for

OPTIONS = dict(QUICK, minimum_calls=20, open_for_ms=600, open_max_ms=2000, window_ms=1500,
               half_open_probes=4)
RATE = 60
CLOSED_FOR = 2.0  # s: more than a window


class Trial:
    """`voters`: of each instance. The first `bad` of the instances are."""

    def __init__(self, name, voters, bad=1, rate_of_bad=RATE):
        self.name, self.voters, self.bad, self.rate_of_bad = name, voters, bad, rate_of_bad
        self.wrong = []
        self.recovery = 0.0

    def run(self, scene, options):
        breaker = self.name.replace(' ', '-').replace(',', '')
        try:
            self.perform(scene, dict(OPTIONS, **options), breaker)
        except AssertionError as error:
            self.wrong.append(str(error))
        says = ('%s: %d of %d instances bad; after an outage of all the fleet was closed after '
                '%.1f s' % (self.name, self.bad, len(self.voters), self.recovery))
        return checkers.Verdict('B7', says, len(self.voters), 2, self.wrong)

    def perform(self, scene, options, breaker):
        url = scene.server.url()
        names = ['%s-%d' % (breaker, n) for n in range(len(self.voters))]
        one_each = [[(n, v, url)] for n, v in zip(names, self.voters)]
        # Those of one machine are processes of their own; the others share one.
        casts = one_each[:self.bad] + [sum(one_each[self.bad:], [])]
        fleet = scene.start(casts, options, [breaker])
        bad = fleet[:self.bad]
        good = fleet[self.bad:]
        dependency = scene.dependency
        tell(fleet, 'load * * outside %d' % RATE)
        tell(bad, 'load * * outside %d' % self.rate_of_bad)
        live = len(set(self.voters))
        wait_for(lambda: all(r['live'] == live for r in reports(fleet)), 5, 'all are heard')
        dependency.bad_callers |= set(names[:self.bad])
        self.stays_closed(fleet, good, CLOSED_FOR)
        wait_for(lambda: not any(r['local'] == 'closed' for r in reports(bad)), 3,
                 'the bad ones\' own breakers open')
        dependency.failing[breaker] = 1
        wait_for(lambda: all(r['state'] != 'closed' for r in reports(fleet)), 5, 'all open')
        dependency.failing[breaker] = 0
        began = time.monotonic()
        wait_for(lambda: all_in(good, breaker, 'closed', 'fleet')
                 and all_in(good, breaker, 'closed'), 15, 'the fleet closes without the bad ones')
        self.recovery = time.monotonic() - began
        self.stays_closed(fleet, good, 0.5)
        wait_for(lambda: not any(r['local'] == 'closed' for r in reports(bad)), 3,
                 'the bad ones\' own breakers open again')
        tell(fleet, 'load * * inside 0 0')

    def stays_closed(self, fleet, good, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.wrong:
            time.sleep(0.05)
            for r in reports(fleet):
                if r['fleet'] != 'closed':
                    self.wrong.append('the fleet is %s, says %s' % (r['fleet'], r['instance']))
            for r in reports(good):
                if r['state'] != 'closed':
                    self.wrong.append('a good one is %s: %s' % (r['state'], r['instance']))


TRIALS = [
    Trial('of two', ['v0', 'v1']),
    Trial('of three', ['v0', 'v1', 'v2']),
    Trial('of ten', ['v%d' % n for n in range(10)]),
    Trial('of two, most of the calls', ['v0', 'v1'], rate_of_bad=3 * RATE),
    Trial('of ten, half of the calls', ['v%d' % n for n in range(10)], rate_of_bad=9 * RATE),
    Trial('a machine of sixteen', ['v0'] * 16 + ['v1', 'v2'], bad=16),
]


def check(child, seconds, seed, plant=None):
    del seconds
    options = {'quorum': 1} if plant == 'quorum' else {}
    with Scene(child, seed) as scene:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            running = [pool.submit(t.run, scene, options) for t in TRIALS]
            return [r.result() for r in running]
