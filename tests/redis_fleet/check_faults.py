"""Whatever happens to Redis, calls keep being decided at once: a breaker that was open stays open
and admits nobody, one that was closed stays closed and admits everybody, nothing flaps when Redis
is back, and then the fleet's breaker can still be opened and closed.

Each fault has a server and a fleet of its own: three machines, two breakers, `ill` (open) and
`well` (closed).

Planted: `trip`, an operator who opens during the fault what was closed.
"""

import concurrent.futures
import time

import checkers
import faults
from fleet import QUICK, Scene, all_in, events, now, reports, slow_decisions, tell, wait_for

OPTIONS = dict(QUICK, open_for_ms=30000, open_max_ms=30000, window_ms=3000)
LASTS = 0.9       # s, at least: three times degraded_after
PATIENCE = 10     # s
# What is said on a busy machine of answers and connections that are late.
LATE = ('does not answer', 'cannot be reached')
PLANTED = 'FLUSHALL'
TOGETHER = 7      # faults, each in a scene of its own


class Trial:
    def __init__(self, child, seed, fault, plant):
        self.child, self.seed, self.fault, self.plant = child, seed, fault, plant
        self.wrong = []
        self.says = ''
        self.trouble = ''
        self.calls = self.settled = 0

    def expect(self, holds, what):
        if not holds:
            self.wrong.append(what)

    def run(self):
        try:
            with Scene(self.child, self.seed) as scene:
                self.perform(scene)
        except (AssertionError, OSError) as error:
            self.wrong.append(str(error) or repr(error))
        return checkers.Verdict('B9', '%s: %s' % (self.fault.name, self.says), self.calls, 100,
                                self.wrong)

    def perform(self, scene):
        if self.fault.user:
            name, password = self.fault.user.split(':')
            scene.server.call('ACL', 'SETUSER', name, 'on', '>' + password, '~*', '&*', '+@all')
        urls = [scene.proxy().url(self.fault.user) for _ in range(2)]
        fleet = scene.start([[('a', 'va', urls[0]), ('b', 'vb', urls[0])], [('c', 'vc', urls[1])]],
                            OPTIONS, ['well', 'ill'], outside=False)
        tell(fleet, 'load * well inside 150 0.03')
        wait_for(lambda: all(r['live'] == 3 for r in reports(fleet)), 5, 'all know each other')
        scene.server.dump()
        tell(fleet, 'load * ill inside 150 1')
        wait_for(lambda: all_in(fleet, 'ill', 'open', 'fleet'), 5, 'the ill one opens')
        tell(fleet, 'load * ill inside 150 0')
        time.sleep(0.2)
        self.settled = settled_of_ill(reports(fleet))  # and they begin counting anew
        began = now()
        self.fault.begin(scene)
        if self.plant == 'trip':
            fleet[0].say('trip a well')
        time.sleep(LASTS)
        self.judge_calls(reports(fleet))
        self.judge_words(fleet, began)
        self.fault.end(scene)
        self.judge_afterwards(scene, fleet, began)

    def judge_calls(self, found):
        well = [r for r in found if r['breaker'] == 'well']
        ill = [r for r in found if r['breaker'] == 'ill']
        self.calls = sum(r['cached_count'] for r in found)
        self.expect(all(r['state'] == 'closed' and r['admitted'] > 0 and not r['refused_open']
                        for r in well), 'well is not closed: %s' % states(well))
        self.expect(all(r['state'] == 'open' and not r['admitted'] for r in ill),
                    'ill is not open: %s' % states(ill))
        self.judge_decisions(found)

    def is_silent(self, breaker):
        return self.fault.silent in ('all', breaker)

    def judge_words(self, fleet, began):
        """What is said about the store. A busy machine may take a while to come to know it."""
        unlike = []

        def as_it_should():
            unlike.clear()
            for r in reports(fleet):
                name = '%s of %s' % (r['breaker'], r['instance'])
                if self.fault.says not in r['trouble']:
                    unlike.append('%s should say "%s" and says "%s"' % (name, self.fault.says,
                                                                        r['trouble']))
                if bool(r['degraded']) != self.is_silent(r['breaker']):
                    unlike.append('%s is%s degraded' % (name, '' if r['degraded'] else ' not'))
                self.trouble = r['trouble']
            return not unlike
        try:
            wait_for(as_it_should, PATIENCE, 'the store to be as it should')
        except AssertionError:
            self.wrong += unlike
        self.says += '"%s"; ' % self.trouble if self.trouble else ''
        self.judge_events(fleet, began)

    def judge_events(self, fleet, began):
        """That nobody is told without need, but for a moment in which the machine was busy."""
        told = events(fleet, kind='store_lost')
        ever = {(e['instance'], e['breaker']) for e in told}
        whys = {(e['instance'], e['breaker']): e['reason'] for e in told if e['at'] >= began
                and not any(late in e['reason'] for late in LATE)}
        for instance in 'abc':
            for breaker in ('well', 'ill'):
                one = (instance, breaker)
                if self.is_silent(breaker):
                    self.expect(one in ever, '%s of %s was not told that the store is lost'
                                % (breaker, instance))
                elif not self.fault.is_cut:  # to come back may have taken it a moment
                    self.expect(one not in whys, '%s of %s was told that the store is lost'
                                % (breaker, instance))
        self.expect(all(self.fault.says in why or self.fault.first in why
                        for why in whys.values()),
                    'the event should say "%s" and says %s' % (self.fault.says,
                                                               set(whys.values())))

    def judge_decisions(self, found):
        p99 = max(r['cached_p99_us'] for r in found)
        longest = max(r['cached_max_us'] for r in found)
        self.says += '%d decisions in at most %d us (99 %%), %d us (all); ' % (
            sum(r['cached_count'] for r in found), p99, longest)
        self.wrong += slow_decisions(found)

    def judge_afterwards(self, scene, fleet, began):
        limit = 12 if self.fault.slow else 6
        ended = now()
        wait_for(lambda: all(not r['degraded'] for r in reports(fleet)), limit,
                 'all are back; %s' % states(reports(fleet)))
        back = (now() - ended) / 1e6

        def agreed():
            rows = {name: scene.inspect(name) for name in ('well', 'ill')}
            return rows['well'].get('state') == 'closed' and rows['ill'].get('state') == 'open'
        wait_for(agreed, limit, 'the record is again as before')
        time.sleep(0.3)
        found = reports(fleet)
        self.judge_decisions(found)
        admitted = settled_of_ill(found) - self.settled
        self.expect(not admitted, 'ill admitted %d calls' % admitted)
        flaps = [e for e in events(fleet, kind='state_changed', since=began)]
        self.expect(not flaps, 'flapped: %s' % [(e['breaker'], e['instance'], e['from'], e['to'],
                                                 e['reason']) for e in flaps[:4]])
        fleet[0].say('reset a ill')
        self.expect(fleet[0].answer('reset')['error'] == 'Success', 'ill could not be reset')
        wait_for(lambda: all_in(fleet, 'ill', 'closed'), limit, 'ill is closed for all')
        fleet[1].say('trip c well')
        self.expect(fleet[1].answer('tripped')['error'] == 'Success', 'well could not be tripped')
        wait_for(lambda: all_in(fleet, 'well', 'open'), limit, 'well is open for all')
        self.says += 'back after %.1f s' % back


def settled_of_ill(found):
    """Outcomes since the beginning, of all calls that were admitted."""
    return sum(r['settled'] for r in found if r['breaker'] == 'ill')


def states(found):
    return ', '.join('%s %s %s (local %s, fleet %s, admitted %d%s)'
                     % (r['instance'], r['breaker'], r['state'], r['local'], r['fleet'],
                        r['admitted'], ', degraded' if r['degraded'] else '') for r in found)


def check(child, seconds, seed, plant=None):
    del seconds
    chosen = [f for f in faults.ALL if plant is None or f.name == PLANTED]
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        trials = [pool.submit(Trial(child, seed + 100 * n, f, plant).run)
                  for n, f in enumerate(chosen)]
        return [t.result() for t in trials]
