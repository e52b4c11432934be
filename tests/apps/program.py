"""Calls the program as people do, in a place of its own: no configuration and no store of whoever
runs the tests has a part in it."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest


class ProgramTest(unittest.TestCase):
    """Cases that call the program. Set `program` (its path) and `has_local` first."""

    program = ''
    has_local = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='trinco-program-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / 'none.toml').touch()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith('TRINCO_')}
        self.environment['TRINCO_CONFIG'] = str(self.folder / 'none.toml')
        store = f'local:{self.folder}/test.db' if self.has_local else 'memory:'
        self.environment.update(TRINCO_LOCKS=store, TRINCO_BREAKERS=store,
                                TRINCO_BREAKERS_MIRROR='none')

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run_program(self, *words, **more):
        """The finished process of a call."""
        how = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                   env=self.environment, text=True, timeout=30, check=False)
        return subprocess.run([self.program, *words], **dict(how, **more))

    def answer(self, *words):
        """Standard output of a call that must succeed without a message."""
        done = self.run_program(*words)
        self.assertEqual((0, ''), (done.returncode, done.stderr), words)
        return done.stdout

    def mistake(self, *words, code=64):
        """The one line that answers a mistake, without "trinco: "."""
        done = self.run_program(*words)
        self.assertEqual((code, ''), (done.returncode, done.stdout), (words, done.stderr))
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        return re.match(r'trinco: (.*)\n', done.stderr).group(1)


def commands_in(overview):
    """The listed commands with their verbs, as word lists, of what `trinco help` prints."""
    commands = []
    for line in re.sub(r'\n {10,}', ' ', overview).splitlines():
        found = re.match(r'  trinco (\S+)((?: \S+)*)(?:   +(.*))?$', line)
        if not found:
            continue
        name, rest, right = found.groups()
        if right and re.fullmatch(r'[a-z-]+(, [a-z-]+)+', right):
            commands += [[name, verb] for verb in right.split(', ')]
        else:
            verb = [word for word in rest.split() if re.fullmatch('[a-z][a-z-]*', word)][:1]
            commands.append([name, *verb])
    return commands
