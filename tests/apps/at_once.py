"""Runs the classes of a test file at once, each in a thread of its own, with its own servers: for
tests that mostly wait. A class that is APART has a thread for each of its tests, and is set up for
each. Whoever names tests on the command line gets these alone, one after the other."""

import concurrent.futures
import io
import sys
import unittest


def classes_of(suite):
    """The test cases, by class."""
    found = {}
    for one in suite:
        for case in one if isinstance(one, unittest.TestSuite) else [one]:
            found.setdefault(type(case), []).append(case)
    return found


def parts_of(suite):
    """What runs in one thread each."""
    for kind, cases in classes_of(suite).items():
        if not getattr(kind, 'APART', False):
            yield cases
            continue
        for case in cases:  # each with a class of its own, and so what that has
            own = type(kind)(kind.__name__, (kind,), {'__module__': kind.__module__})
            yield [own(case._testMethodName)]


def run(cases):
    said = io.StringIO()
    result = unittest.TextTestRunner(said, verbosity=1).run(unittest.TestSuite(cases))
    return result.wasSuccessful(), said.getvalue()


def main(at_a_time=16):
    if len(sys.argv) > 1:
        unittest.main(verbosity=1)
    parts = list(parts_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules['__main__'])))
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        results = list(pool.map(run, parts))
    for well, said in sorted(results, reverse=True):
        print(said, file=sys.stderr)
    sys.exit(not all(well for well, _ in results))
