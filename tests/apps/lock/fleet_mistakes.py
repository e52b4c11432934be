"""What people get wrong with locks of a fleet, whichever store keeps them, and servers that are not
what the URL says."""

import concurrent.futures
import contextlib
import socket
import threading


class Listener:
    """Takes connections and answers each with these bytes; None: with nothing, b'': by closing."""

    def __init__(self, says):
        self.says = says
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        self.kept = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                if self.says is None:
                    self.kept.append(connection)
                    continue
                with contextlib.suppress(OSError):
                    connection.sendall(self.says)
                    connection.recv(4096)
                connection.close()

    def end(self):
        # Wakes the thread that accepts.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for one in self.kept:
            one.close()


class Names:
    """For a Scene with keys(), all that the store has."""

    def test_names_that_are_none(self):
        for name, part in (('', 'empty'), ('a//b', '//'), ('a/../b', '..'), ('a/', '/'),
                           ('a b', '"a b"'), ('n' * 201, '200')):
            with self.subTest(name=name):
                sentence = self.mistake('lock', name, '--', 'true', code=64)
                self.assertIn(part, sentence)
        self.assertEqual([], self.keys())

    def test_the_longest_name_is_one(self):
        done = self.run_lock('n' * 200, '--', 'sh', '-c', 'echo $TRINCO_LOCK')
        self.assertEqual((0, 'n' * 200 + '\n', ''), (done.returncode, done.stdout, done.stderr))

    def test_a_name_inside_of_another_is_a_lock_of_its_own(self):
        outer = self.hold('a')
        inner = self.hold('a/b')
        self.assertEqual(75, self.run_lock('a', '--no-wait', '-q', '--', 'true').returncode)
        self.assertEqual(0, outer.let_go())
        done = self.run_lock('a', '--no-wait', '--', 'true')
        self.assertEqual(0, done.returncode, 'a is held up by a/b: ' + done.stderr)
        self.assertEqual(0, inner.let_go())


class Strangers:
    """For a Scene without servers."""

    def setUp(self):
        super().setUp()
        self.ways = {'lock': ['lock', 'job'], 'once': ['once', 'key'],
                     'locks': ['locks', 'ls', 'job'], 'records': ['records', 'ls']}

    def all_say(self, url, code, *parts, only=None):
        """By these commands, in one sentence with these parts."""
        def words_of(name):
            command = ['--', 'true'] if name in ('lock', 'once') else []
            return [*self.ways[name], '--locks', url, *command]
        def say(name):
            return name, self.mistake(*words_of(name), code=code)
        # At the same time: most of them wait.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for name, sentence in pool.map(say, only or self.ways):
                with self.subTest(command=name, url=url):
                    for part in parts:
                        self.assertIn(part, sentence)

    def listener(self, says):
        one = Listener(says)
        self.addCleanup(one.end)
        return f'127.0.0.1:{one.port}'
