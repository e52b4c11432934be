"""Counts that waited out an outage of Redis do not trip a dependency that is healthy again: they
are booked when they happened. The same failures without the outage open the fleet's breaker.

Planted: `no_outage`, where it opens.
"""

import time

import checkers
from fleet import QUICK, Scene, events, now, reports, tell, wait_for

# Of three instances all together cross the minimum of calls, none of them alone.
OPTIONS = dict(QUICK, window_ms=1000, minimum_calls=60, open_for_ms=5000, open_max_ms=5000)
BURST = 0.7      # s of failures
PER_SECOND = 50  # calls of each instance then


def trial(child, seed, outage):
    with Scene(child, seed) as scene:
        url = scene.server.url()
        fleet = scene.start([[('a', 'va', url), ('b', 'vb', url), ('c', 'vc', url)]], OPTIONS,
                            ['dep'], outside=False)
        tell(fleet, 'load * * inside 10 0')
        wait_for(lambda: all(r['live'] == 3 for r in reports(fleet)), 5, 'they are heard')
        began = now()
        if outage:
            scene.server.pause()
        tell(fleet, 'load * * inside %d 1' % PER_SECOND)
        time.sleep(BURST)
        tell(fleet, 'load * * inside 10 0')
        if outage:
            time.sleep(OPTIONS['window_ms'] / 1000 + 0.5)
            scene.server.resume()
            wait_for(lambda: not any(r['degraded'] for r in reports(fleet)), 5, 'all are back')
        time.sleep(0.6)
        found = reports(fleet)
        failures = sum(r['failure'] for r in found)
        opened = [e for e in events(fleet, kind='state_changed', since=began) if e['to'] == 'open']
        in_record = scene.inspect('dep')['failure']
        return opened, failures, in_record


def check(child, seconds, seed, plant=None):
    del seconds
    opened, failures, in_record = trial(child, seed, plant != 'no_outage')
    wrong = ['it was opened by %s: %s' % (e['instance'], e['reason']) for e in opened]
    if in_record != failures:
        wrong.append('%d failures, %d in the totals' % (failures, in_record))
    without, _, _ = trial(child, seed + 10, False)
    if not any(e['reason'] == 'failure_rate' for e in without):
        wrong.append('without an outage they open nothing: this proves nothing')
    says = '%d failures that waited out an outage; the same without one open it' % failures
    return [checkers.Verdict('B7', says, failures, OPTIONS['minimum_calls'], wrong)]
