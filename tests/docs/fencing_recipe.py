"""What every recipe of docs/fencing.md must do, whatever it is a recipe for."""

import contextlib
import os
import random
import threading

WRITERS = 6
WRITES = int(os.environ.get('TRINCO_FENCING_WRITES', '60'))
HIGHEST = 2**53 - 1


class Again(Exception):
    """The resource asks for the whole transaction once more."""


class Recipe:
    """What every recipe must do. A case says how to read (the value; None: refused) and to write
    (whether it was accepted), and what the resource has: (the highest token that it has seen, the
    value)."""

    def test_a_lower_token_is_refused_an_equal_or_higher_one_is_not(self):
        for token, accepted in ((5, True), (4, False), (5, True), (7, True), (6, False), (5, False),
                                (HIGHEST - 1, True), (HIGHEST, True), (HIGHEST - 1, False)):
            before = self.has()
            self.assertEqual(accepted, self.write(token), (token, before))
            if not accepted:
                self.assertEqual(before, self.has(), 'a refused write changed something')
                self.assertIsNone(self.read(token))
                self.assertEqual(before, self.has(), 'a refused reader changed something')
            else:
                if self.value_is_told:
                    self.assertEqual((token, token), self.has())
                self.assertEqual(self.has()[1], self.read(token))

    def test_what_a_new_holder_has_read_stays_as_it_was(self):
        """The one before had read, too, and comes late, before the new one has written anything."""
        self.write(5)
        self.assertEqual(self.has()[1], self.read(5))
        read = self.read(7)
        self.assertFalse(self.write(5), 'written under the eyes of who has read')
        self.assertEqual((7, read), self.has())
        self.assertTrue(self.write(7))

    def test_a_recipe_without_its_comparison_would_be_found(self):
        self.break_it()
        self.assertTrue(self.write(9))
        self.assertTrue(self.write(4), 'the case above does not see what it is there for')

    def test_reading_without_the_token_would_be_found(self):
        self.write(5)
        self.has()  # as the new holder would, with 7
        self.assertTrue(self.write(5), 'the case above does not see what it is there for')

    def test_many_late_and_new_writers_never_take_it_back(self):
        """Each writer has the tokens of its own grants, in order, and late writes between them."""
        for level in self.levels:
            with self.subTest(level=level):
                self.setUp()
                self.race(level)

    def race(self, level):
        accepted, wrong = [], []
        done = threading.Event()

        def look():
            last = 0
            while not done.is_set():
                seen, value = self.has()
                if seen < last or self.value_is_told and value != seen:
                    wrong.append((last, seen, value))
                last = seen

        def writer(number):
            chance = random.Random(number)
            try:
                with self.connection(level) as (_, write):
                    for step in range(1, WRITES // len(self.levels) + 1):
                        own = step * WRITERS + number
                        token = own if chance.random() < 0.6 else chance.randint(1, own)
                        if repeated(write, token):
                            accepted.append(token)
            except Exception as error:  # a thread's own would be lost
                wrong.append(error)

        at_once([look], [lambda n=n: writer(n) for n in range(WRITERS)], done)
        self.assertEqual([], wrong[:3], 'what was seen went back')
        self.assertEqual(max(accepted), self.has()[0])
        self.assertLess(len(accepted), WRITERS * WRITES // len(self.levels),
                        'nobody was late: this shows nothing')
        self.history_is_in_order()

    def test_nothing_is_lost_between_reading_and_writing(self):
        """Each reads, adds, and writes, all at once and each with a token of its own: as many as
        were accepted were added."""
        for level in self.levels:
            with self.subTest(level=level):
                self.setUp()
                self.write(1, 0)
                self.add_at_once(level)

    def add_at_once(self, level):
        start = self.has()[1]
        added, refused, wrong = [], [], []

        def add(read, write, token):
            value = read(token)
            return value is not None and write(token, value + 1)

        def adder(number):
            try:
                with self.connection(level) as (read, write):
                    for step in range(1, WRITES // len(self.levels) + 1):
                        well = repeated(add, read, write, step * WRITERS + number)
                        (added if well else refused).append(step)
            except Exception as error:
                wrong.append(error)

        at_once([], [lambda n=n: adder(n) for n in range(WRITERS)])
        self.assertEqual([], wrong[:3])
        self.assertTrue(added and refused, 'they did not meet: this shows nothing')
        self.assertEqual(start + len(added), self.has()[1])

    value_is_told = True  # `write` says what it is to be: unless it is told another, its token
    levels = ('',)  # of isolation

    def connection(self, level):
        """One client's: what `read` and `write` do."""
        assert not level
        return contextlib.nullcontext((self.read, self.write))

    def history_is_in_order(self):
        pass


def at_once(lookers, workers, done=None):
    """Runs the workers to their end, and the lookers until then."""
    lookers = [threading.Thread(target=one) for one in lookers]
    workers = [threading.Thread(target=one) for one in workers]
    for thread in [*lookers, *workers]:
        thread.start()
    for thread in workers:
        thread.join()
    if done:
        done.set()
    for thread in lookers:
        thread.join()


def repeated(step, *words):
    """As the document says: the whole of it, with the same token, until it is done or refused."""
    while True:
        try:
            return step(*words)
        except Again:
            continue
