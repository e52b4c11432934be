#!/usr/bin/env python3
"""The checker of beliefs on diaries that are known."""

import pathlib
import tempfile
import unittest

import beliefs


class Overlaps(unittest.TestCase):
    def found(self, **diaries):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in diaries.items():
                (pathlib.Path(folder) / f'{name}.diary').write_text(text, encoding='ascii')
            return beliefs.overlaps(beliefs.read(folder))

    def test_one_after_another(self):
        self.assertEqual([], self.found(a='x 1 10 11\nx 1 20 21\nx 9 90 91\n', b='x 5 30 31\n',
                                        c='y 3 15 16\n'))

    def test_the_end_of_one_in_the_time_of_the_next(self):
        self.assertEqual(1, len(self.found(a='x 1 10 11\nx 1 40 41\n', b='x 5 30 31\n')))

    def test_an_old_one_that_believes_in_it_beyond_two_others(self):
        self.assertEqual(2, len(self.found(a='x 1 10 11\nx 1 70 71\n', b='x 5 30 31\n',
                                           c='x 6 50 51\n')))

    def test_what_may_have_been_before(self):
        """Somewhere between 10 and 50: it was not running in between."""
        self.assertEqual([], self.found(a='x 1 10 50\n', b='x 5 30 31\n'))

    def test_a_token_of_two(self):
        self.assertEqual(1, len(self.found(a='x 1 10 11\n', b='x 1 30 31\n')))

    def test_a_line_that_was_not_finished(self):
        self.assertEqual([], self.found(a='x 1 10 11\nx 1 4', b='x 5 30 31\n'))


if __name__ == '__main__':
    unittest.main()
