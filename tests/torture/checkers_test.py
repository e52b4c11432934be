"""Each checker of the torture holds on a good history and is shown a violation of its own."""

import collections
import unittest

import checkers
from checkers import Access, Call, Grant, Orphan


class Checkers(unittest.TestCase):
    def holds(self, verdict):
        self.assertFalse(verdict.failed(), verdict.text())

    def fails(self, verdict, saying):
        self.assertTrue(verdict.failed())
        self.assertIn(saying, verdict.text())

    def test_accepted_tokens_never_decrease(self):
        good = [Access('a', 1, True), Access('b', 9, True), Access('a', 3, True),
                Access('a', 2, False), Access('a', 3, True)]
        self.holds(checkers.tokens_at_the_resource(good, 3))
        self.fails(checkers.tokens_at_the_resource(good + [Access('a', 2, True)]),
                   'token 2 was accepted after 3')
        self.fails(checkers.tokens_at_the_resource(good, 4), 'too little')

    def test_stale_work_of_commands(self):
        self.holds(checkers.stale_work({'library': 3, 'command': 0}, 3))
        self.fails(checkers.stale_work({'library': 3, 'command': 1}), 'came after the next grant')
        self.fails(checkers.stale_work({'library': 0, 'command': 0}, 1), 'too little')

    def test_tokens_grow_with_grants(self):
        good = [Grant('a', 1, 0, 10), Grant('a', 2, 5, 30), Grant('a', 3, 31, 40),
                Grant('b', 1, 50, 60)]
        self.holds(checkers.tokens_of_grants(good))
        # Both were waiting: either may have been first.
        self.holds(checkers.tokens_of_grants([Grant('a', 2, 0, 10), Grant('a', 1, 5, 30),
                                              Grant('a', 3, 40, 50)]))
        self.fails(checkers.tokens_of_grants(good + [Grant('a', 3, 50, 60)]), 'granted 2 times')
        self.fails(checkers.tokens_of_grants(good + [Grant('a', 0, 41, 60)]),
                   'token 0 was granted to who asked after 3')
        self.fails(checkers.tokens_of_grants(good, 5), 'too little')

    def test_no_increment_is_lost(self):
        good = [Access('a', 1, True, 1), Access('a', 1, True), Access('a', 2, True, 2),
                Access('a', 1, False, 2), Access('b', 1, True, 1)]
        self.holds(checkers.increments(good, {'a': 2, 'b': 1}, 3))
        self.fails(checkers.increments(good + [Access('a', 3, True, 2)], {'a': 2, 'b': 1}),
                   '2 was written over 2')
        self.fails(checkers.increments(good, {'a': 1, 'b': 1}), '2 increments were acknowledged, 1')
        self.fails(checkers.increments(good, {'a': 2, 'b': 1}, 4), 'too little')

    def test_nothing_lives_on(self):
        good = [Orphan('wrapper killed', 0, 9_000, 1_500, 1_200),
                Orphan('paused', 0, 900, 1_500, 800)]
        late = good + [Orphan('wrapper killed', 1_000, 9_000, 1_500, 4_500)]
        self.holds(checkers.orphans(good))
        self.fails(checkers.orphans(late), '3 ms too late')
        self.holds(checkers.orphans(late, 2, [(0, 500), (1_400, 4_400)]))
        self.fails(checkers.orphans(late, 2, [(0, 1_100), (1_500, 4_300)]), '0 ms too late')
        self.fails(checkers.orphans(good, 2), 'too little')

    def test_nothing_is_left(self):
        self.holds(checkers.leftovers({'sessions': 0, 'sockets': 0}, 7, 7))
        self.fails(checkers.leftovers({'sessions': 0, 'sockets': 2}, 7), '2 sockets are left')
        self.fails(checkers.leftovers({'sessions': 0}, 0), 'too little')

    def test_never_too_many_probes(self):
        def probe(arrived, left, expires=1_000):
            return Call('d', True, expires, arrived, left)

        good = [probe(0, 10), probe(5, 20), probe(10, 15), Call('d', False, 0, 6, 9),
                probe(12, 14, 11)]
        self.holds(checkers.probes(good, 2, 3))
        self.fails(checkers.probes(good + [probe(12, 13)], 2), '3 probes at once')
        # One that has run out does not count any more, however long its call takes.
        self.holds(checkers.probes([probe(0, 900, 10), probe(0, 900, 10), probe(11, 20),
                                    probe(12, 20)], 2))
        self.fails(checkers.probes(good, 2, 9), 'too little')

    def test_reports_are_counted_once(self):
        self.holds(checkers.counted({'x': 5, 'y': 7}, 1, 12, 12))
        self.holds(checkers.counted({'x': 5, 'y': 7}, 1, 13))
        self.fails(checkers.counted({'x': 5, 'y': 7}, 1, 14), 'the store counts 14')
        self.fails(checkers.counted({'x': 5, 'y': 7}, 1, 11), 'the store counts 11')
        self.fails(checkers.counted({'x': 5}, 0, 5, 6), 'too little')

    def test_outcomes_of_registries(self):
        self.holds(checkers.counted_by_registries(10, 15, 12))
        self.fails(checkers.counted_by_registries(10, 15, 9), 'the store counts 9')
        self.fails(checkers.counted_by_registries(10, 15, 16), 'the store counts 16')
        self.fails(checkers.counted_by_registries(0, 15, 12), 'too little')

    def test_codes_mean_something(self):
        ended = collections.Counter({('lock', 0): 3, ('lock', 75): 1})
        self.holds(checkers.manners(ended, {'lock': {0, 75}}))
        ended[('lock', -11)] += 1
        self.fails(checkers.manners(ended, {'lock': {0, 75}}), '1 times lock ended with -11')
        self.fails(checkers.manners({}, {}), 'too little')

    def test_growth(self):
        mib = 1024 * 1024
        good = [(10, mib)] + [(30, 9 * mib)] * 6
        self.holds(checkers.growth(good))
        self.fails(checkers.growth(good + [(40, 9 * mib)]), 'from 30 to 40 descriptors')
        self.fails(checkers.growth(good + [(30, 40 * mib)]), 'KiB')
        self.fails(checkers.growth([]), 'too little')


if __name__ == '__main__':
    unittest.main()
