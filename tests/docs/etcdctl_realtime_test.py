#!/usr/bin/env python3
"""docs/etcdctl.md as a program: one script under `etcdctl lock` and under `trinco lock`, on one
etcd. It must go wrong with the one, as that page says, and right with the other; and its lines for
an etcd with TLS and users. Takes the program's path; prints the figures."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

APPS = pathlib.Path(__file__).resolve().parents[1] / 'apps'
sys.path[:0] = [str(APPS), str(APPS / 'etcd')]
import at_once  # noqa: E402
import cluster  # noqa: E402
from cluster import PATIENCE, PAUSE, Cluster, wait_until  # noqa: E402
from secured import Secured, ask_for_users, make_certificates  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
TTL = 2  # seconds
LOOKED = 1.5  # seconds, at what both do
# The work that the lock is for: it writes down when, as often as it can. TERM impresses it or not.
WORK = '''
import os, signal, sys, time
if sys.argv[2] == 'deaf':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(out, b"%d\\n" % os.getpid())
end = time.monotonic() + 60
while time.monotonic() < end:
    os.write(out, b"%d\\n" % time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    time.sleep(0.002)
'''


class Job:
    """The work under one of the two locks."""

    def __init__(self, lock, file, environment, ears='deaf'):
        self.file = file
        self.process = subprocess.Popen([*lock, sys.executable, '-c', WORK, str(file), ears],
                                        env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)

    def lines(self):
        text = self.file.read_text() if self.file.exists() else ''
        return [int(line) for line in text.splitlines(keepends=True) if line.endswith('\n')]

    def times(self):
        return self.lines()[1:]

    def works(self):
        return len(self.lines()) > 20

    def end(self):
        """Also what was paused, and a command that has not written down who it is."""
        for number in (signal.SIGCONT, signal.SIGKILL):
            for send, pid in [(os.killpg, self.process.pid),
                              *((os.kill, pid) for pid in self.lines()[:1])]:
                with contextlib.suppress(ProcessLookupError):
                    send(pid, number)
        self.process.wait()


@unittest.skipUnless(cluster.find() and cluster.find('etcdctl'),
                     'there is no etcd; try `make servers`')
class Page(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='trinco-compare-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / 'none.toml').touch()
        self.etcd = self.make_cluster()
        self.addCleanup(self.etcd.end)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(('TRINCO_', 'ETCD'))}
        self.environment['TRINCO_CONFIG'] = str(self.folder / 'none.toml')

    def make_cluster(self):
        return Cluster(self.folder / 'etcd')


class Guarded(Page):
    def make_cluster(self):
        make_certificates(self.folder)
        return Secured(self.folder / 'etcd', self.folder)

    def test_the_lines_for_certificates_and_users(self):
        text = pathlib.Path(__file__).resolve().parents[2].joinpath('docs/etcdctl.md').read_text()
        lines, = re.findall(r'^```sh\n(.*?)^```$', text, re.M | re.S)
        at = self.etcd.nodes[0].address_and_port
        for word, here in (('10.0.0.1', at), ('/etc/etcd/ca.pem', f'{self.folder}/ca.pem'),
                           ('/etc/me.pem', f'{self.folder}/server.pem'),
                           ('/etc/me.key', f'{self.folder}/server.key')):
            self.assertIn(word, lines)
            lines = lines.replace(word, here)
        ask_for_users(self.etcd, 'jobs', 'jobs/')
        line = 'etcdctl --endpoints={} lock --ttl=2 jobs/a -- echo under both locks'
        tools = pathlib.Path(cluster.find('etcdctl')).parent
        for given, well in ((lines, True), (lines.replace('ETCDCTL_USER', 'UNUSED'), False),
                            (lines.replace('ETCDCTL_CACERT', 'UNUSED'), False)):
            both = f'set -e\n{given}\n"{PROGRAM}" lock jobs/b -- {line.format(at)}'
            done = subprocess.run(
                ['sh', '-c', both], capture_output=True, text=True, timeout=PATIENCE, check=False,
                env=dict(self.environment, PATH=f'{tools}:{os.environ["PATH"]}'))
            self.assertEqual((well, well), (done.returncode == 0, 'under both' in done.stdout),
                             (given, done.stdout, done.stderr))


class Comparison(Page):
    def lock(self, kind, name):
        at = self.etcd.nodes[0].address_and_port
        if kind == 'etcdctl':
            control = [cluster.find('etcdctl'), f'--endpoints={at}']
            return [*control, 'lock', f'--ttl={TTL}', name, '--']
        return [PROGRAM, 'lock', name, '--ttl', f'{TTL}s', '--locks', self.etcd.url, '--']

    def job(self, kind, name, number, ears='deaf'):
        one = Job(self.lock(kind, name), self.folder / f'{name}-{number}', self.environment, ears)
        self.addCleanup(one.end)
        wait_until(one.works if number == 1 else lambda: len(self.etcd.keys(name + '/')) == 2,
                   f'{number} at {name}')
        return one

    def at_a_time(self, kind, title, what):
        """For how many milliseconds both worked, after this has happened to the first."""
        name = f'{title}-{kind}'
        first = self.job(kind, name, 1)
        second = self.job(kind, name, 2)
        what(first, name)
        wait_until(second.works, f'the second at {name}')
        PAUSE.wait(LOOKED)
        begun = second.times()[0]
        late = [at for at in first.times() if at > begun]
        first.end()
        second.end()
        return (late[-1] - begun) / 1e6 if late else 0.0

    def after_term(self, kind):
        """For how many milliseconds the work goes on when the wrapper has got TERM."""
        job = self.job(kind, f'term-{kind}', 1, 'listens')
        # To the process, as a supervisor sends it.
        job.process.terminate()
        begun = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        PAUSE.wait(LOOKED)
        worked = (job.times()[-1] - begun) / 1e6
        job.end()
        return max(worked, 0.0)

    def delete_entry(self, _, name):
        """As an operator does who wants it free."""
        oldest = self.etcd.must('get', name + '/', '--prefix', '--keys-only', '--sort-by=CREATE',
                                '--limit=1').split()
        self.etcd.must('del', oldest[0])

    def test_one_script_under_both(self):
        cases = {'paused': lambda job, _: job.process.send_signal(signal.SIGSTOP),
                 'killed': lambda job, _: job.process.kill(), 'deleted': self.delete_entry}
        kinds = ('etcdctl', 'trinco')
        with concurrent.futures.ThreadPoolExecutor() as pool:
            found = {(title, kind): pool.submit(self.at_a_time, kind, title, what)
                     for title, what in cases.items() for kind in kinds}
            found.update({('term', kind): pool.submit(self.after_term, kind) for kind in kinds})
            found = {case: future.result() for case, future in found.items()}
        for title in (*cases, 'term'):
            print(f'{title}: ' + ', '.join(f'{found[title, kind]:.0f} ms with {kind} lock'
                                           for kind in kinds))
        for title in (*cases, 'term'):
            self.assertGreater(found[title, 'etcdctl'], 1_000,
                               f'{title} went well: the page is not right any more')
        self.assertEqual(0, found['paused', 'trinco'])
        self.assertEqual(0, found['killed', 'trinco'])
        # Learnt after the fact: the command has its grace to end.
        self.assertLess(found['deleted', 'trinco'], 1_000)
        self.assertLess(found['term', 'trinco'], 1_000)


if __name__ == '__main__':
    at_once.main()
