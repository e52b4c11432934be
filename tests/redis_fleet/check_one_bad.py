"""One bad instance of two, of three and of ten (all its calls fail, the others' succeed), which
draws more than half of all calls, neither opens the fleet nor keeps it open through half-open; its
own breaker is open. Sixteen bad processes of one machine, which nobody has given a voter's name,
are one voter. A dependency that fails for all opens for everybody.

Planted: `quorum`, of one: whoever fails opens it for all, and keeps it open. Every trial must see
it.
"""

import concurrent.futures
import time

import checkers
from fleet import QUICK, Scene, reports, tell, wait_for

OPTIONS = dict(QUICK, minimum_calls=20, open_for_ms=600, open_max_ms=2000, window_ms=1500,
               half_open_probes=4)
BAD_RATE = 800    # calls a second that reach the bad one
CLOSED_FOR = 2.0  # s: more than a window
RECOVERS = 12     # s: with a quorum of one the bad one keeps it open for longer
FEWEST = 200      # calls that must have reached the bad ones to prove something
PLANT_FOUND = all


class Trial:
    """`voters`: of each instance, of which the first `bad` are bad. `threads` call through each of
    the bad ones, so that enough of its calls are under way when its own breaker opens."""

    def __init__(self, name, voters, bad=1, threads=8, good_rate=3.0):
        self.name, self.voters, self.bad = name, voters, bad
        self.threads, self.good_rate = threads, good_rate
        self.wrong = []
        self.calls = {'bad': 0, 'good': 0}
        self.recovery = None
        self.good = self.bad_ones = ()
        self.breaker = name.replace(' ', '-').replace(',', '')

    def run(self, scene, options):
        try:
            self.begin(scene, dict(OPTIONS, **options))
            self.perform(scene)
            tell(self.good + self.bad_ones, 'load * * inside 0 0')
            self.note_calls()
            if 2 * self.calls['bad'] < sum(self.calls.values()):
                self.wrong.append('the bad ones drew less than half of the calls')
        except AssertionError as error:
            self.wrong.append(str(error))
            tell(self.good + self.bad_ones, 'load * * inside 0 0')
        says = '%s: %d of %d instances bad, which drew %d of %d calls' % (
            self.name, self.bad, len(self.voters), self.calls['bad'], sum(self.calls.values()))
        if self.recovery is not None:
            says += '; the fleet was closed %.1f s after an outage of all' % self.recovery
        return checkers.Verdict('B7', says, self.calls['bad'], FEWEST, self.wrong)

    def begin(self, scene, options):
        url = scene.server.url()
        names = ['%s-%d' % (self.breaker, n) for n in range(len(self.voters))]
        one_each = [[(n, v, url)] for n, v in zip(names, self.voters)]
        # The bad ones are processes of their own; the others share one.
        self.bad_ones = scene.start(one_each[:self.bad], options, [self.breaker], self.threads)
        self.good = scene.start([sum(one_each[self.bad:], [])], options, [self.breaker])
        scene.dependency.bad_callers |= set(names[:self.bad])
        tell(self.good, 'load * * outside %g' % self.good_rate)
        live = len(set(self.voters))
        # Who is bad calls nobody yet, so that its first call is its first failure.
        wait_for(lambda: all(r['live'] == live for r in reports(self.good)), 40, 'all are heard')

    def perform(self, scene):
        raise NotImplementedError

    def note_calls(self):
        """The reports of the good ones. A call that is refused has been drawn, too."""
        found = {'bad': reports(self.bad_ones), 'good': reports(self.good)}
        for kind, some in found.items():
            self.calls[kind] += sum(r['admitted'] + r['refused_open'] + r['refused_waiting']
                                    for r in some)
        return found

    def stays_closed(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.wrong:
            time.sleep(0.05)
            found = self.note_calls()
            for r in found['bad'] + found['good']:
                if r['fleet'] != 'closed':
                    self.wrong.append('the fleet is %s, says %s' % (r['fleet'], r['instance']))
            for r in found['good']:
                if r['state'] != 'closed':
                    self.wrong.append('a good one is %s: %s' % (r['state'], r['instance']))

    def bad_ones_open(self):
        wait_for(lambda: not any(r['local'] == 'closed' for r in self.note_calls()['bad']), 10,
                 'the bad ones\' own breakers open')


class Opening(Trial):
    def perform(self, scene):
        self.note_calls()
        self.calls = {'bad': 0, 'good': 0}
        tell(self.bad_ones, 'load * * outside %d' % (BAD_RATE / self.bad))
        self.stays_closed(CLOSED_FOR)
        self.bad_ones_open()


class Recovery(Trial):
    def perform(self, scene):
        scene.dependency.failing[self.breaker] = 1
        tell(self.good + self.bad_ones, 'load * * outside 60')
        wait_for(lambda: all(r['state'] != 'closed' and r['fleet'] != 'closed'
                             for r in reports(self.good)), 20, 'all open')
        self.note_calls()
        self.calls = {'bad': 0, 'good': 0}
        tell(self.good, 'load * * outside %g' % self.good_rate)
        tell(self.bad_ones, 'load * * outside %d' % (BAD_RATE / self.bad))
        scene.dependency.failing[self.breaker] = 0
        began = time.monotonic()
        wait_for(self.all_closed, RECOVERS, 'the fleet closes without the bad ones')
        self.recovery = time.monotonic() - began
        self.stays_closed(0.5)
        self.bad_ones_open()

    def all_closed(self):
        return all(r['fleet'] == r['state'] == 'closed' for r in self.note_calls()['good'])


def voters(count):
    return ['v%d' % n for n in range(count)]


# The sixteen have no names of voters: they have their machine's.
SIXTEEN = [''] * 16 + ['v1', 'v2']
# Where the others are many, each of them makes few calls, or the bad one could not be met at all.
TRIALS = [Opening('of two', voters(2)), Opening('of three', voters(3)),
          Opening('of ten', voters(10), good_rate=1),
          Opening('a machine of sixteen', SIXTEEN, 16, threads=1),
          Recovery('of two, half open', voters(2), threads=4, good_rate=10),
          Recovery('of three, half open', voters(3), threads=4, good_rate=10),
          Recovery('of ten, half open', voters(10), threads=4, good_rate=3),
          Recovery('a machine of sixteen, half open', SIXTEEN, 16, threads=1, good_rate=10)]


def check(child, seconds, seed, plant=None):
    del seconds
    options = {'quorum': 1} if plant == 'quorum' else {}
    with Scene(child, seed) as scene:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = [pool.submit(t.run, scene, options) for t in TRIALS]
            return [r.result() for r in running]
