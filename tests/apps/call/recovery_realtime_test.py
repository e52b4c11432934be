#!/usr/bin/env python3
"""`trinco call` on the way back: who may try, how many at once, seen by the dependency itself."""

import os
import pathlib
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'breakers'))
from scene import PATIENCE, Scene, main, wait_until  # noqa: E402

CLIENT = '''
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
sys.exit(int(s.recv(9) or b"99"))
'''


class Dependency:
    """Keeps its callers waiting until it is told what to answer, and counts them."""

    def __init__(self, path):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen(64)
        self.lock = threading.Lock()
        self.callers = []
        self.calls = 0
        self.most = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                caller = self.listening.accept()[0]
            except OSError:
                return
            with self.lock:
                # One that has gone is no call any more.
                gone = [c for c in self.callers if self._is_gone(c)]
                for c in gone:
                    c.close()
                self.callers = [c for c in self.callers if c not in gone] + [caller]
                self.calls += 1
                self.most = max(self.most, len(self.callers))

    @staticmethod
    def _is_gone(caller):
        try:
            return caller.recv(1, socket.MSG_DONTWAIT) == b''
        except BlockingIOError:
            return False
        except OSError:
            return True

    def answer(self, code):
        with self.lock:
            for caller in self.callers:
                if not self._is_gone(caller):
                    caller.send(str(code).encode())
                caller.close()
            self.callers = []

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.answer(98)


class Recovery(Scene):
    policy = ('--open-for', '100ms', '--half-open-probes', '3', '--jitter', '0')

    def setUp(self):
        super().setUp()
        path = str(self.folder / 'socket')
        self.dependency = Dependency(path)
        self.addCleanup(self.dependency.close)
        self.client = [sys.executable, '-S', '-E', '-c', CLIENT, path]
        self.fail_calls(5, *self.policy)
        self.assertEqual('open', self.state())
        self.wait_for_probes()

    def begin(self, *options):
        return self.start('call', 'pay', *(options or self.policy), '--', *self.client)

    def wait_for_calls(self, number):
        wait_until(lambda: self.dependency.calls >= number, f'{number} calls')

    def probe(self, code, *options):
        """One call that gets through, or refusals until one does."""
        before = self.dependency.calls
        while True:
            call = self.begin(*options)
            wait_until(lambda: call.poll() is not None or self.dependency.calls > before,
                       'a refusal or a call')
            if self.dependency.calls > before:
                self.dependency.answer(code)
                self.assertEqual(code, call.wait(PATIENCE))
                return
            self.assertEqual(75, call.wait())

    def test_never_more_than_the_probes_that_are_allowed(self):
        calls = [self.begin() for _ in range(20)]
        wait_until(lambda: sum(c.poll() is not None for c in calls) == 17, '17 refusals')
        refused = [c for c in calls if c.poll() is not None]
        for call in refused:
            self.assertEqual(75, call.returncode)
            self.assertRegex(call.stderr.read(), r'\Atrinco: pay is half open \(probing\) and all '
                                                 r'its probes are out, refused by the shared '
                                                 r'breaker; retry in [0-9.]+ m?s\n\Z')
        self.wait_for_calls(3)
        self.assertEqual((3, 3), (self.dependency.calls, self.dependency.most))
        self.assertEqual('half_open', self.state())
        self.dependency.answer(0)
        for call in calls:
            self.assertEqual(75 if call in refused else 0, call.wait(PATIENCE))
        self.assertEqual('closed', self.state())
        # And now everybody may call, as many as there are.
        calls = [self.begin() for _ in range(6)]
        self.wait_for_calls(9)
        self.dependency.answer(0)
        for call in calls:
            self.assertEqual(0, call.wait(PATIENCE))
        self.assertEqual(6, self.show()['window']['success'])

    def test_probes_that_fail_open_it_again_for_longer(self):
        self.probe(1)
        self.assertEqual('half_open', self.state())
        self.probe(1)  # two of three cannot become fewer than half
        breaker = self.show()
        self.assertEqual(('open', 'probes_failed', 1),
                         (breaker['state'], breaker['reason'], breaker['backoff_level']))
        self.wait_for_probes()
        for _ in range(3):
            self.probe(0)
        self.assertEqual('closed', self.state())

    def test_one_failure_among_successes_closes_it(self):
        self.probe(0)
        self.probe(1)
        self.probe(0)
        self.assertEqual('closed', self.state())

    def test_a_probe_that_is_interrupted_gives_its_place_back(self):
        one = ('--open-for', '100ms', '--half-open-probes', '1', '--jitter', '0')
        for number in (signal.SIGINT, signal.SIGTERM):
            before = self.dependency.calls
            call = self.begin(*one)
            wait_until(lambda: self.dependency.calls > before, 'a call')  # noqa: B023
            self.assertEqual(75, self.begin(*one).wait(PATIENCE))
            call.send_signal(number)
            self.assertIn(call.wait(PATIENCE), (128 + number, -number))
            self.dependency.answer(97)
            self.assertEqual('half_open', self.state())
        self.probe(0, *one)
        self.assertEqual('closed', self.state())

    def test_a_probe_whose_process_is_killed_is_reclaimed(self):
        one = ('--open-for', '100ms', '--half-open-probes', '1', '--jitter', '0',
               '--probe-timeout', '1s', '--timeout', '10s')
        call = self.begin(*one)
        self.wait_for_calls(1)
        call.kill()
        call.wait()
        # The command went with it, though it waits for an answer that does not come.
        wait_until(lambda: self.dependency._is_gone(self.dependency.callers[0]), 'its end')
        self.assertEqual(75, self.begin(*one).wait(PATIENCE))
        self.probe(0, *one)
        self.assertEqual('closed', self.state())

    def test_a_probe_that_takes_too_long_has_failed_and_says_so(self):
        one = ('--open-for', '100ms', '--half-open-probes', '1', '--jitter', '0',
               '--probe-timeout', '20ms')
        call = self.begin(*one)
        self.wait_for_calls(1)
        wait_until(lambda: self.lease_is_over(call), 'the end of the lease')
        self.dependency.answer(0)
        self.assertEqual(0, call.wait(PATIENCE))
        self.assertRegex(call.stderr.read(), r'\Atrinco: the probe of pay took longer than '
                                             r'probe_timeout \(20 ms\) and counts as failed; '
                                             r"[^\n]+\ntrinco: this call's options of pay "
                                             r'[^\n]+\n\Z')
        self.assertEqual('open', self.state())

    def lease_is_over(self, call):
        """The process has run for longer than its lease: its command had connected before."""
        with open(f'/proc/{call.pid}/stat', encoding='ascii') as stat:
            began = int(stat.read().rsplit(')', 1)[1].split()[19]) / os.sysconf('SC_CLK_TCK')
        with open('/proc/uptime', encoding='ascii') as uptime:
            return float(uptime.read().split()[0]) - began > 0.5


if __name__ == '__main__':
    main()
