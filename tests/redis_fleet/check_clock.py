"""A server whose clock is an hour behind what its records were written by (another machine, or a
clock that was put right): what is open stays open for what was left of it and no longer, and what
comes afterwards lasts as long as it should. Nothing about the processes' clocks is changed: the
records are, behind their backs.

Planted: `end_only`, where the hour is added to the opening's end alone.
"""

import time

import checkers
import records
from fleet import QUICK, Scene, all_in, events, now, reports, tell, wait_for

OPEN_FOR = 4.0   # s
OPTIONS = dict(QUICK, open_for_ms=int(OPEN_FOR * 1000), open_max_ms=int(OPEN_FOR * 1000), jitter=0,
               window_ms=1500)
HOUR = 3600e6    # us
LIMIT = 20       # s: an hour is more on any machine


class Story:
    def __init__(self, scene):
        self.scene, self.server = scene, scene.server
        self.wrong = []
        url = self.server.url()
        self.fleet = scene.start([[('a', 'va', url), ('b', 'vb', url)], [('c', 'vc', url)]],
                                 OPTIONS, ['well', 'ill'], outside=False)

    def expect(self, holds, what):
        if not holds:
            self.wrong.append(what)

    def opens(self, name, why):
        """When the first had been told."""
        asked = now()
        tell(self.fleet, 'load * %s inside 150 1' % name)
        wait_for(lambda: all_in(self.fleet, name, 'open', 'fleet'), LIMIT, '%s opens %s' %
                 (name, why))
        tell(self.fleet, 'load * %s inside 150 0' % name)
        return min(e['at'] for e in events(self.fleet, name, 'state_changed', asked)
                   if e['to'] == 'open')

    def closes(self, name, opened):
        """By itself, and not before its time: nobody has asked for a probe earlier."""
        wait_for(lambda: all_in(self.fleet, name, 'closed', 'fleet')
                 and all_in(self.fleet, name, 'closed'), LIMIT, '%s closes again' % name)
        closed = min(e['at'] for e in events(self.fleet, name, 'state_changed', opened)
                     if e['to'] in ('half_open', 'closed'))
        lasted = (closed - opened) / 1e6
        # The first may have heard of it late, on a busy machine.
        self.expect(lasted > OPEN_FOR / 2, '%s was open for %.1f s only' % (name, lasted))
        return lasted

    def left(self, name):
        """Seconds by the record."""
        found = records.numbers(self.server, name)
        return (found['ends'] - found['clock']) / 1e6

    def by_hand(self, word, answer, name, state):
        self.fleet[0].say('%s a %s' % (word, name))
        error = self.fleet[0].answer(answer)['error']
        self.expect(error == 'Success', '%s: %s' % (word, error))
        wait_for(lambda: all_in(self.fleet, name, state), LIMIT, '%s: all are %s' % (word, state))

    def run(self, plant):
        tell(self.fleet, 'load * well inside 150 0.02')
        wait_for(lambda: all(r['live'] == 3 for r in reports(self.fleet)), LIMIT, 'they are heard')
        opened = self.opens('ill', 'before')
        for name in ('ill', 'well'):
            records.set_ahead(self.server, name, HOUR, 'ends' if plant else None)
        changed = now()
        first = self.closes('ill', opened)
        told = [e for e in events(self.fleet, 'well', 'state_changed', changed)]
        self.expect(not told, 'well was touched: %s' % told[:1])
        self.expect(all_in(self.fleet, 'well', 'closed', 'fleet'), 'well is not closed')
        wait_for(lambda: not any(r['degraded'] for r in reports(self.fleet)), LIMIT,
                 'the store answers')
        skew = records.numbers(self.server, 'ill')['skew']
        self.expect(skew > 0.9 * HOUR, 'the record was not ahead: %d us' % skew)
        opened = self.opens('ill', 'afterwards')
        self.expect(self.left('ill') <= OPEN_FOR, 'ill opened for %.1f s' % self.left('ill'))
        second = self.closes('ill', opened)
        self.by_hand('trip', 'tripped', 'well', 'open')
        self.expect(self.left('well') <= OPEN_FOR, 'well tripped for %.1f s' % self.left('well'))
        self.by_hand('reset', 'reset', 'well', 'closed')
        return ('open for %.1f s though the clock fell back by an hour, and then for %.1f s; trip '
                'and reset do what they should' % (first, second))


def check(child, seconds, seed, plant=None):
    del seconds
    with Scene(child, seed) as scene:
        story = Story(scene)
        says = 'an opening that did not end'
        try:
            says = story.run(plant)
        except AssertionError as error:
            story.wrong.append(str(error))
        calls = sum(r['settled'] for r in reports(story.fleet))
        return [checkers.Verdict('B9', says, calls, 100, story.wrong)]
