"""The sum of acknowledged reports is what the record counts: with replies that get lost on the way,
so that reports are repeated, and with instances that are killed. Once at the store's contract,
where each acknowledgement is seen, and once with whole registries that close.

Planted: careless ones, who take a repeated report for a new one.
"""

import random
import subprocess
import time

import checkers
from fleet import QUICK, Scene, tell

COUNTERS = 8
PROCESSES, INSTANCES = 10, 5  # of each; whole registries
MOST = 100  # outcomes of one report


class Counter:
    """A process that reports to a breaker of its own sum."""

    def __init__(self, scene, name, url, breaker, batches, careless):
        words = [scene.child, 'count', url, name, name, breaker, str(batches)]
        self.process = subprocess.Popen(words + ['careless'] * careless, text=True,
                                        stdout=subprocess.PIPE, stderr=scene.errors)
        self.sum = 0

    def finish(self):
        for line in self.process.stdout:
            if line.endswith('\n'):
                self.sum = int(line)
        self.process.wait()
        self.process.stdout.close()
        return self.sum


def of_counters(scene, proxies, seconds, careless):
    batches = int(seconds * 40)
    exact = [Counter(scene, 'c%d' % n, proxies[n % len(proxies)].url(), 'exact', batches, careless)
             for n in range(COUNTERS)]
    killed = [Counter(scene, 'k%d' % n, proxies[n % len(proxies)].url(), 'killed', 1_000_000,
                      False) for n in range(COUNTERS)]
    time.sleep(seconds * 0.6)
    for one in killed:
        one.process.kill()
    sums = {'k%d' % n: one.finish() for n, one in enumerate(killed)}
    exact_sum = sum(one.finish() for one in exact)
    breaks = sum(p.obey('heal')['breaks'] for p in proxies)
    found = scene.inspect('exact').get('success', 0)
    verdict = checkers.counted({'all': exact_sum}, 0, found, batches * COUNTERS)
    verdict.says += '; %d replies lost' % breaks
    if breaks < 10:
        verdict.violations.append('only %d replies were lost' % breaks)
    in_store = scene.inspect('killed').get('success', 0)
    return [verdict, checkers.counted(sums, MOST * COUNTERS, in_store, COUNTERS * 10)]


def of_registries(scene, proxies, seconds, seed):
    r = random.Random(seed)
    # Who closes sends what it has for a store_timeout: on a busy machine, too.
    options = dict(QUICK, window_ms=10000, store_timeout_ms=3000, degraded_after_ms=5000)
    casts = [[('r%d-%d' % (n, k), 'v%d' % n, r.choice(proxies).url()) for k in range(INSTANCES)]
             for n in range(PROCESSES)]
    fleet = scene.start(casts, options, ['reg'], outside=False)
    for p in proxies:
        p.obey('lossy 0.1')
    tell(fleet, 'load * * inside 100 0.05')
    time.sleep(seconds * 0.6)
    breaks = sum(p.obey('heal')['breaks'] for p in proxies)
    time.sleep(0.5)  # whoever waits for an answer that is lost has asked again
    tell(fleet, 'close')
    last = []
    for p in fleet:
        p.answer('closed')
        p.reader.join(10)
        last += p.last
    given = sum(one['settled'] for one in last)
    row = scene.inspect('reg')
    counted = row['success'] + row['failure']
    verdict = checkers.counted_by_registries(given, given, counted, 1000)
    verdict.says += '; %d replies lost' % breaks
    return [verdict]


def check(child, seconds, seed, plant=None):
    with Scene(child, seed) as scene:
        proxies = [scene.proxy() for _ in range(3)]
        for p in proxies:
            p.obey('delay 1 1')
            p.obey('lossy 0.15')
        found = of_counters(scene, proxies, seconds, plant == 'careless')
        return found + of_registries(scene, proxies, seconds, seed)
