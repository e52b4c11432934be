"""What the tests of `trinco breakers` and `trinco call` share: a store of their own, the program,
and waiting for conditions instead of sleeping. Takes the program's path as the first argument, and
further ones that a test takes itself."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PAUSE = threading.Event()
PATIENCE = 30  # seconds; no test needs as much, a busy machine may


def wait_until(condition, what='the condition'):
    """Polls; the value of the condition once it is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        PAUSE.wait(0.005)
    raise AssertionError(f'{what} did not come true in {PATIENCE} s')


def signals_as_in_a_shell():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


class Scene(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='trinco-breakers-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / 'x.db'
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith('TRINCO_')},
                            'TRINCO_BREAKERS': f'local:{self.file}',
                            'TRINCO_LOCKS': f'local:{self.file}', 'TRINCO_CONFIG': '',
                            'TRINCO_BREAKERS_MIRROR': 'none'}

    def start(self, *words, **options):
        options = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'text': True,
                   'stdin': subprocess.DEVNULL, **options}
        process = subprocess.Popen([PROGRAM, *words], env=self.environment,
                                   preexec_fn=signals_as_in_a_shell, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def run_program(self, *words, **options):
        options = {'stdin': subprocess.DEVNULL, **options}
        if 'input' in options:
            del options['stdin']
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                              env=self.environment, timeout=PATIENCE, check=False, **options)
        return done.returncode, done.stdout, done.stderr

    def answer(self, *words):
        """Standard output of what must succeed without a word on standard error."""
        code, out, err = self.run_program(*words)
        self.assertEqual((0, ''), (code, err), words)
        return out

    def mistake(self, *words, code=64):
        """The one line that answers a mistake."""
        got, out, err = self.run_program(*words)
        self.assertEqual((code, ''), (got, out), (words, err))
        self.assertRegex(err, r'\Atrinco: [^\n]+\n\Z')
        return err

    def call(self, *words, name='pay', **options):
        """`trinco call`: (exit code, stdout, stderr)."""
        return self.run_program('call', name, *words, **options)

    def call_ends(self, code, *words, name='pay'):
        """A call whose wrapper says nothing."""
        got, _, err = self.call(*words, name=name)
        self.assertEqual((code, ''), (got, err), words)

    def fail_calls(self, times, *options, name='pay'):
        for _ in range(times):
            self.call_ends(1, *options, '--', 'false', name=name)

    def show(self, name='pay'):
        """What `breakers show` says of one, as JSON."""
        said = json.loads(self.answer('breakers', 'show', name, '-o', 'json'))
        self.assertEqual(2, said['schema'])
        return said['breaker']

    def state(self, name='pay'):
        return self.show(name)['in_force']

    def wait_for_probes(self, name='pay'):
        """Until the time of an opening has run out."""
        wait_until(lambda: self.show(name)['remaining_ms'] == 0, 'the end of the opening')


def main():
    unittest.main(verbosity=1)
