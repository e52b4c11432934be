#!/usr/bin/env python3
"""One breaker, used by services with the library and by `trinco call` at the same time. Takes the
program and a service."""

import os
import subprocess
import sys
import threading

SERVICE = os.path.abspath(sys.argv.pop(2))

from scene import PATIENCE, Scene, main, wait_until  # noqa: E402


class Service:
    def __init__(self, url, name='pay'):
        self.process = subprocess.Popen([SERVICE, url, name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, word):
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip('\n')

    def end(self):
        """Lets it send what it has; its exit code."""
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Shared(Scene):
    def service(self):
        one = Service(f'local:{self.file}')
        self.addCleanup(one.close)
        return one

    def wait_for(self, service, state):
        wait_until(lambda: service.ask('state') == state, f'{state} at the service')

    def wait_for_totals(self, what, number):
        wait_until(lambda: self.run_program('breakers', 'show', 'pay')[0] == 0 and
                   self.show()['totals'][what] == number, f'{number} {what}')

    def test_failures_of_both_add_up_under_the_options_of_the_service(self):
        service = self.service()
        for _ in range(3):
            self.assertEqual('admitted', service.ask('failure'))
        self.wait_for_totals('failure', 3)
        self.fail_calls(1)
        breaker = self.show()
        self.assertEqual((60_000, 4), (breaker['options']['window_ms'],
                                       breaker['window']['failure']))
        self.fail_calls(1)
        self.assertEqual('open', self.state())
        self.wait_for(service, 'open none')
        self.assertEqual('refused fleet breaker', service.ask('success'))

    def test_failures_of_the_service_stop_the_program(self):
        service = self.service()
        for _ in range(5):
            service.ask('failure')
        # Calls that succeeded before the failures were told would keep the breaker closed.
        self.wait_for_totals('failure', 5)
        wait_until(lambda: self.call('--', 'true')[0] == 75, 'a refusal')

    def test_they_recover_together(self):
        service = self.service()
        self.assertEqual('admitted', service.ask('success'))
        self.wait_for_totals('success', 1)
        self.answer('breakers', 'trip', 'pay', '--for', '50ms')
        self.wait_for_probes()
        self.call_ends(0, '--', 'true')
        self.wait_for(service, 'half_open none')
        wait_until(lambda: service.ask('success') == 'probe', 'a probe of the service')
        wait_until(lambda: self.show()['probes_left'] == 1, 'the settlement')
        self.call_ends(0, '--', 'true')
        self.assertEqual('closed', self.state())
        self.wait_for(service, 'closed none')
        self.assertEqual('admitted', service.ask('success'))

    def test_an_operator_is_heard_by_both(self):
        service = self.service()
        service.ask('success')
        self.wait_for_totals('success', 1)
        self.answer('breakers', 'force-open', 'pay')
        self.wait_for(service, 'closed forced_open')
        self.assertEqual('refused operator', service.ask('success'))
        self.assertEqual(75, self.call('--', 'true')[0])
        self.answer('breakers', 'resume', 'pay')
        self.wait_for(service, 'closed none')
        self.call_ends(0, '--', 'true')

    def test_at_the_same_time_nothing_is_lost_and_nothing_counts_twice(self):
        services = [self.service() for _ in range(3)]
        codes = []

        def program():
            for _ in range(20):
                codes.append(self.call('--', 'true'))

        def service(one):
            for _ in range(5):
                self.assertEqual('100', one.ask('many'))

        threads = [threading.Thread(target=program) for _ in range(2)]
        threads += [threading.Thread(target=service, args=(one,)) for one in services]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for one in services:
            self.assertEqual(0, one.end())
        self.assertEqual([(0, '', '')] * 40, codes)
        self.assertEqual(3 * 500 + 40, self.show()['totals']['success'])


if __name__ == '__main__':
    main()
