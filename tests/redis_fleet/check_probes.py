"""Never more than half_open_probes unexpired probes of a whole fleet, counted at the dependency:
with probers that are killed, probes that hang past their deadline, replies that are lost or late,
and openings so short that the fleet is half open nearly all the time."""

import random
import time

import checkers
from fleet import QUICK, Process, Scene, all_in, now, tell, wait_for

PROBES = 3
TIMEOUT = 300_000  # us
OPTIONS = dict(QUICK, open_for_ms=60, open_max_ms=120, half_open_probes=PROBES, quorum=1,
               probe_timeout_ms=TIMEOUT // 1000, degraded_after_ms=5000)
PROCESSES = 10
INSTANCES = 5  # of each
OVERDUE = 2    # probes that must have hung past their deadline to prove something


class Actor:
    """One place in the fleet: when its process is killed, another one takes it."""

    def __init__(self, scene, number, url):
        self.scene, self.number, self.url = scene, number, url
        self.lives = 0
        self.process = None
        self.start()

    def start(self):
        self.lives += 1
        cast = [('p%d-%d-%d' % (self.number, self.lives, k), 'v%d' % self.number, self.url)
                for k in range(INSTANCES)]
        breaker = 'dep' if self.scene.plant != 'apart' else 'dep%d' % self.number
        self.process = Process(self.scene, cast, OPTIONS, [breaker], threads=2).ready()
        self.process.say('load * * outside 15')

    def again(self):
        self.process.kill()
        self.start()


def overdue(calls):
    return sum((c.left or now()) - c.arrived > TIMEOUT for c in calls if c.kind == 'fleet')


def has_seen(dependency, probes):
    calls = [c for c in list(dependency.calls) if c.kind == 'fleet']
    return len(calls) >= probes and overdue(calls) >= OVERDUE


def check(child, seconds, seed, plant=None):
    r = random.Random(seed)
    with Scene(child, seed) as scene:
        scene.plant = plant
        bad = scene.proxy()
        bad.obey('delay 3 3')
        dependency = scene.dependency
        dependency.hangs = 1.4 * TIMEOUT / 1e6
        for name in ['dep'] + ['dep%d' % n for n in range(PROCESSES)]:
            dependency.failing[name] = 1
        actors = [Actor(scene, n, bad.url() if n == 0 else scene.server.url())
                  for n in range(PROCESSES)]
        if plant is None:
            wait_for(lambda: not all_in([a.process for a in actors], 'dep', 'closed'), 10,
                     'the fleet opens')
        for name in list(dependency.failing):
            dependency.failing[name], dependency.hanging[name] = 0.7, 0.25
        dependency.takes = (0.002, 0.04)
        kills, end = 0, time.monotonic() + seconds
        # A slow machine gets more time to show something.
        while time.monotonic() < end or (time.monotonic() < end + 3 * seconds + 10
                                         and not has_seen(dependency, 5 * seconds)):
            time.sleep(r.uniform(0.1, 0.5))
            r.choice(actors).again()
            kills += 1
            if r.random() < 0.3:
                bad.obey('lossy 0.2')
                time.sleep(0.1)
                bad.obey('heal')
                bad.obey('delay 3 3')
        breaks = bad.obey('count')['breaks']
        tell([a.process for a in actors], 'load * * inside 0 0')
        left = now()
        calls = [checkers.Call('dep', c.kind == 'fleet', c.asked + TIMEOUT, c.arrived,
                               c.left or left) for c in list(dependency.calls)]
        hung = overdue(list(dependency.calls))
        verdict = checkers.probes(calls, PROBES, int(5 * seconds))
        verdict.says += ('; %d processes killed, %d replies lost, %d probes past their deadline'
                         % (kills, breaks, hung))
        return [verdict, checkers.Verdict('B1+', 'probes that hung past their deadline', hung,
                                          OVERDUE, [])]
