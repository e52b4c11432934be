#!/usr/bin/env python3
"""The processes of the demo's second act, without the act: the gateway, and five services that call
it with their breaker and five without, side by side. What they did is judged here, from what the
gateway counted and what the services told. Takes the program's path."""

import http.client
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ''
LIMIT = 20  # seconds after which a condition that does not come true has failed
SERVICES = 5
PROBES = 2  # of the fleet's breaker at a time: gateway_caller.cpp


class Process:
    """A hidden command, and the lines that it says."""

    def __init__(self, test, *words, store=None):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith('TRINCO_')}
        environment['TRINCO_BREAKERS_MIRROR'] = 'none'
        if store:
            environment['TRINCO_BREAKERS'] = store
        self.run = subprocess.Popen([PROGRAM, *words], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, bufsize=1,
                                    env=environment)
        self.lines = []
        test.addCleanup(self.run.stdout.close)
        test.addCleanup(self.run.wait)
        test.addCleanup(self.run.kill)

    def say(self, line):
        self.run.stdin.write(line + '\n')
        self.run.stdin.flush()

    def said(self, *begin):
        """The lines that begin with these words, as lists of words."""
        words = [line.split() for line in self.lines]
        return [line for line in words if line[:len(begin)] == list(begin)]

    def end(self):
        """The exit code, after its stdin has ended."""
        self.run.stdin.close()
        for line in self.run.stdout:
            self.lines.append(line)
        return self.run.wait(timeout=LIMIT)


def hear(processes, seconds, condition=lambda: False):
    """Reads what they say for so long, or until it is so. Whether it became so."""
    end = time.monotonic() + seconds
    while not condition():
        left = end - time.monotonic()
        if left <= 0:
            return False
        ready, _, _ = select.select([p.run.stdout for p in processes], [], [], left)
        for process in processes:
            if process.run.stdout in ready:
                line = process.run.stdout.readline()
                if not line:
                    raise AssertionError(f'{process.run.args} has ended')
                process.lines.append(line)
    return True


class Side:
    """A gateway and its five callers."""

    def __init__(self, test, store=None):
        self.gateway = Process(test, 'demo-gateway')
        hear([self.gateway], LIMIT, lambda: self.gateway.said('listens'))
        port = self.gateway.said('listens')[0][1]
        self.callers = [Process(test, 'demo-caller', '--name', f'service-{n}', '--port', port,
                                '--seed', str(n), store=store) for n in range(SERVICES)]
        self.all = [self.gateway, *self.callers]

    def moment(self, mood, nth=0):
        return int(self.gateway.said('mood', mood)[nth][2])

    def came(self, mood):
        return int(self.gateway.said('calls', mood)[-1][2])

    def most_probes(self, mood):
        return int(self.gateway.said('calls', mood)[-1][5])


def calls(caller):
    """[(begun at, ended at, fate)] in microseconds."""
    return [(int(c[1]), int(c[1]) + int(c[2]) / 1000, c[3]) for c in caller.said('call')]


class Gateway(unittest.TestCase):
    def test_has_three_moods_and_counts_what_reaches_it(self):
        gateway = Process(self, 'demo-gateway')
        hear([gateway], LIMIT, lambda: gateway.said('listens'))
        port = int(gateway.said('listens')[0][1])

        def status(timeout, **fields):
            connection = http.client.HTTPConnection('127.0.0.1', port, timeout=timeout)
            try:
                connection.request('POST', '/charges', '12 EUR', fields)
                return connection.getresponse().status
            except TimeoutError:
                return None
            finally:
                connection.close()

        def change(mood):
            gateway.say(mood)
            self.assertTrue(hear([gateway], LIMIT, lambda: gateway.said('mood', mood)))

        self.assertEqual([200, 200], [status(LIMIT), status(LIMIT)])
        gateway.say('cheerful')  # no mood of its
        change('hanging')
        self.assertEqual([None, None], [status(0.1), status(0.1, **{'X-Probe': '1'})])
        change('failing')
        self.assertEqual(503, status(LIMIT))
        change('healthy')
        self.assertEqual(200, status(LIMIT))
        self.assertEqual(0, gateway.end())
        self.assertIn(['calls', 'healthy', '2', '0', '0', '0'], gateway.said('calls'))
        hung = gateway.said('calls', 'hanging')[-1]
        self.assertEqual(('2', '1', '1'), (hung[2], hung[4], hung[5]))
        self.assertEqual('1', gateway.said('calls', 'failing')[-1][2])

    def test_five_services_stop_before_the_first_hanging_call_returns(self):
        folder = tempfile.TemporaryDirectory(prefix='trinco-gateway-')
        self.addCleanup(folder.cleanup)
        guarded = Side(self, f'local:{pathlib.Path(folder.name)}/breakers.db')
        bare = Side(self)
        both = [*guarded.all, *bare.all]
        self.assertTrue(hear(both, LIMIT, lambda: all(
            c.said('ready') for side in (guarded, bare) for c in side.callers)))
        for side in (guarded, bare):
            for caller in side.callers:
                caller.say('go')
        hear(both, 1.2)
        for mood, seconds in (('hanging', 3), ('failing', 2)):
            guarded.gateway.say(mood)
            bare.gateway.say(mood)
            hear(both, seconds)
        guarded.gateway.say('healthy')
        self.assertTrue(hear(both, LIMIT, lambda: guarded.gateway.said('mood', 'healthy')))
        well = guarded.moment('healthy')

        def calls_again(caller):
            states = caller.said('state')
            return (states[-1][2] == 'closed' and int(states[-1][1]) > well and
                    calls(caller)[-1][0] > int(states[-1][1]) and calls(caller)[-1][2] == 'ok')

        self.assertTrue(hear(both, LIMIT, lambda: all(map(calls_again, guarded.callers))),
                        [c.said('state') for c in guarded.callers])
        self.assertEqual([0] * len(both), [process.end() for process in both])
        self.judge(guarded, bare)

    def judge(self, guarded, bare):
        hung = guarded.moment('hanging')
        first_return = min(end for caller in guarded.callers
                           for _, end, fate in calls(caller) if fate == 'timeout')
        self.assertGreater(first_return - hung, 1_900_000)
        for caller in guarded.callers:
            stopped = [int(s[1]) for s in caller.said('state') if s[2] == 'open'][0]
            self.assertGreater(stopped, hung)
            self.assertLess(stopped, first_return)
            # From then on it is refused, but for probes, until it is well.
            sent = [c for c in caller.said('call') if stopped < int(c[1]) < guarded.moment(
                'healthy') and c[3] != 'refused' and c[-1] != 'probe']
            self.assertEqual([], sent)
            refused = sorted(int(c[2]) for c in caller.said('call') if c[3] == 'refused')
            self.assertGreater(len(refused), 20)
            self.assertLess(refused[len(refused) // 2], 1_000_000)  # ns
        for caller in bare.callers:
            self.assertEqual([], caller.said('state'))
            self.assertGreater(sum(fate == 'timeout' for _, _, fate in calls(caller)), 20)
        dead_guarded = guarded.came('hanging') + guarded.came('failing')
        dead_bare = bare.came('hanging') + bare.came('failing')
        self.assertLess(dead_guarded * 2, dead_bare)
        self.assertGreater(guarded.most_probes('failing'), 0)
        self.assertLessEqual(guarded.most_probes('failing'), PROBES)


if __name__ == '__main__':
    PROGRAM = sys.argv.pop(1)
    unittest.main()
