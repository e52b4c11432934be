"""guarded_http against a server that hangs, fails and recovers, and against wrong command lines.

Started by ctest as: guarded_http_test.py FOLDER_OF_THE_PROGRAMS TEST...
Both programs tell times of CLOCK_MONOTONIC, so what one did can be set against what the other saw.
"""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import unittest

programs = "."


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


class ProgramTest(unittest.TestCase):
    def start(self, program, *arguments, **options):
        child = subprocess.Popen(
            [os.path.join(programs, program), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(self.end, child)
        return child

    def end(self, child):
        if child.poll() is None:
            child.kill()
        child.communicate()

    def run_to_end(self, *arguments, timeout=20):
        child = self.start("guarded_http", *arguments)
        out, err = child.communicate(timeout=timeout)
        return child.returncode, out, err

    def start_server(self, story):
        server = self.start("flaky_server", story, stdin=subprocess.PIPE)
        return server, json.loads(server.stdout.readline())["url"]


class Story(ProgramTest):
    """One run is looked at from all sides: it takes its eleven seconds once."""

    timeout_ms = 3000
    probes = 3

    def setUp(self):
        server, url = self.start_server("healthy:1500ms,hanging:4s,failing:2s,healthy")
        self.code, out, self.err = self.run_to_end(
            url, "--rate", "20", "--for", "11s", "--timeout", "3s", "--slow-after", "500ms",
            "--window", "2s", "--open-for=500ms", "--backoff=1", "--probes", str(self.probes),
            "--json")
        served, _ = server.communicate(timeout=5)  # its input ends, and so does it
        self.events = lines(out)
        self.start_ms = self.events[0]["steady_ms"]
        self.summary = self.events[-1]
        self.states = [e for e in self.events if e["event"] == "state"]
        served = lines(served)
        self.requests = [e for e in served if e["event"] == "request"]
        self.moods = {}
        for e in served:
            if e["event"] == "mood":
                self.moods[e["mood"]] = e["steady_ms"]

    def at(self, event):
        return self.start_ms + event["at_ms"]

    def test_the_breaker_guards_caller_and_server(self):
        self.assertEqual(self.code, 0)
        self.assertEqual(self.err, "")
        self.it_opened_while_the_first_calls_still_hung()
        self.refusals_took_no_time()
        self.while_not_closed_only_probes_reached_the_server()
        self.probes_met_the_failing_server_as_well()
        self.it_closed_after_the_recovery_and_not_before()
        self.the_sums_agree()

    def it_opened_while_the_first_calls_still_hung(self):
        first_hanging = next(r for r in self.requests if r["mood"] == "hanging")
        opened = self.at(self.states[0])
        self.assertEqual((self.states[0]["from"], self.states[0]["to"]), ("closed", "open"))
        self.assertGreater(opened, first_hanging["steady_ms"])
        self.assertLess(opened, first_hanging["steady_ms"] + self.timeout_ms - 100)
        before = [e for e in self.events
                  if e["event"] == "second" and self.at(e) <= opened]
        self.assertEqual(sum(e["failed"] for e in before), 0)

    def refusals_took_no_time(self):
        self.assertGreater(self.summary["refused"], 50)
        self.assertLess(self.summary["refused_p95_ms"], 5)
        self.assertGreater(self.summary["failed_max_ms"], self.timeout_ms - 100)

    def while_not_closed_only_probes_reached_the_server(self):
        opened = self.at(self.states[0]) + 100  # what was admitted just before is on its way
        closed = self.at(self.states[-1])
        rounds = sum(1 for s in self.states if s["to"] == "half_open")
        reached = [r for r in self.requests if opened < r["steady_ms"] < closed]
        self.assertGreater(rounds, 1)
        self.assertGreater(len(reached), 0)
        self.assertLessEqual(len(reached), rounds * self.probes)
        for state, following in zip(self.states, self.states[1:]):
            begin = self.at(state) + 100
            inside = [r for r in reached if begin < r["steady_ms"] < self.at(following) - 20]
            most = self.probes if state["to"] == "half_open" else 0
            self.assertLessEqual(len(inside), most, state)

    def probes_met_the_failing_server_as_well(self):
        self.assertTrue(any(r["mood"] == "failing" for r in self.requests))
        self.assertIn("status 503", self.summary["failures"])

    def it_closed_after_the_recovery_and_not_before(self):
        closings = [s for s in self.states if s["to"] == "closed"]
        self.assertEqual(len(closings), 1)
        self.assertEqual(closings[0], self.states[-1])
        self.assertGreater(self.at(closings[0]), self.moods["healthy"])
        self.assertEqual(self.summary["state"], "closed")
        last = [e for e in self.events if e["event"] == "second"][-1]
        self.assertEqual((last["failed"], last["refused"]), (0, 0))
        self.assertGreater(last["ok"], 10)

    def the_sums_agree(self):
        s = self.summary
        self.assertEqual(s["calls"], s["ok"] + s["failed"] + s["refused"] + s["stopped"])
        self.assertEqual(s["sent"], s["calls"] - s["refused"])
        # What was given up at the end may have been sent, or not.
        self.assertAlmostEqual(s["sent"], len(self.requests), delta=s["stopped"])
        self.assertEqual(s["skipped"], 0)
        self.assertEqual(s["failed"], sum(s["failures"].values()))
        # The rate was kept while calls hung.
        self.assertAlmostEqual(s["calls"], 220, delta=10)


class Failures(ProgramTest):
    """What fails at once is counted, and crashes nothing."""

    def summary_of(self, url, *more):
        code, out, err = self.run_to_end(url, "--for", "1s", "--timeout", "900ms", "--json", *more)
        self.assertEqual((code, err), (0, ""))
        return lines(out)[-1]

    def test_a_refused_connection(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # not listening: connections are refused
            summary = self.summary_of("http://127.0.0.1:%d/" % taken.getsockname()[1])
        # The minimum of calls, then it is open; on a busy machine a few may be under way.
        self.assertIn(summary["failed"], range(5, 9))
        self.assertGreater(summary["refused"], 5)
        self.assertEqual(summary["opened"], 1)
        self.assertEqual(summary["state"], "open")

    def test_a_host_that_does_not_exist(self):
        summary = self.summary_of("http://no-such-host.invalid/")
        self.assertGreater(summary["failed"], 0)
        self.assertEqual(summary["ok"], 0)

    def test_a_server_without_tls_says_what_to_check(self):
        def answer(connection):
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with socket.create_server(("127.0.0.1", 0)) as plain:
            def serve():
                try:
                    while True:
                        answer(plain.accept()[0])
                except OSError:
                    pass  # closed: the test is over

            threading.Thread(target=serve, daemon=True).start()
            summary = self.summary_of("https://127.0.0.1:%d/" % plain.getsockname()[1])
        self.assertEqual(summary["ok"], 0)
        self.assertIn("speak https on this port", " ".join(summary["failures"]))

    def test_answers_that_blame_the_request_are_no_failures_but_429_is(self):
        class Answers(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_error(int(self.path[1:]))

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = "http://127.0.0.1:%d/" % server.server_port
            wrong = self.summary_of(url + "404")
            busy = self.summary_of(url + "429")
            server.shutdown()
        self.assertEqual((wrong["failed"], wrong["opened"]), (0, 0))
        self.assertGreater(wrong["ok"], 10)
        self.assertEqual((busy["ok"], busy["opened"]), (0, 1))
        self.assertEqual(list(busy["failures"]), ["status 429"])


class Ending(ProgramTest):
    def test_ctrl_c_ends_with_the_summary_while_calls_hang(self):
        _, url = self.start_server("hanging")
        child = self.start("guarded_http", url, "--for", "1h", "--timeout", "1m", "--json")
        for line in child.stdout:
            if json.loads(line)["event"] == "second":
                break
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=5)
        summary = lines(out)[-1]
        self.assertEqual((child.returncode, err), (0, ""))
        self.assertEqual(summary["event"], "summary")
        self.assertGreater(summary["stopped"], 0)
        self.assertEqual(summary["failed"], 0)

    def test_the_demonstration_brings_its_own_server(self):
        code, out, err = self.run_to_end("--demo", "--for", "1500ms")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("the server is healthy", out)
        self.assertRegex(out, r"(?m)^ +1s +\d+ +\d+ +0 +0 +0 .* closed$")
        self.assertRegex(out, r"In 1\.\d s \d+ calls were wanted")


class CommandLine(ProgramTest):
    url = "http://localhost/"

    def test_help_teaches(self):
        code, out, err = self.run_to_end("--help")
        self.assertEqual((code, err), (0, ""))
        for word in ("OPENS", "HALF OPEN", "CLOSES", "--rate", "--probes", "--demo", "429"):
            self.assertIn(word, out)

    def test_what_is_wrong_is_one_sentence_with_value_and_range(self):
        for arguments, says in (
                ((), ("URL", "--help")),
                (("localhost",), ("'localhost'", "http://")),
                (("ftp://x",), ("'ftp://x'", "http://")),
                ((self.url, "http://b/"), ("'http://b/'", "second")),
                (("http://",), ("'http://'", "needs a host")),
                (("http://x y/",), ("'http://x y/'", "spaces")),
                (("http://x:99999/",), ("'http://x:99999/'", "65535")),
                (("ftp://me:pw@x/?token=pw",), ("'ftp://***@x/?***'", "http://")),
                (("http://me:p/w@x",), ("'http://***@x'", "65535")),
                ((self.url, "http://me:pw@x"), ("'http://***@x'", "second")),
                ((self.url, "--demo"), ("--demo",)),
                ((self.url, "--json=1"), ("--json takes no value",)),
                (("--demo=yes",), ("--demo takes no value",)),
                ((self.url, "--frobnicate"), ("'--frobnicate'", "--help")),
                ((self.url, "--rate"), ("--rate", "needs a value", "0.1 to 1000")),
                ((self.url, "--rate", "fast"), ("--rate", "'fast'", "0.1 to 1000")),
                ((self.url, "--rate=0"), ("--rate", "'0'", "0.1 to 1000")),
                ((self.url, "--rate", "nan"), ("--rate", "'nan'", "0.1 to 1000")),
                ((self.url, "--for", "10"), ("--for", "'10'", "100ms to 24h")),
                ((self.url, "--for", "99999999999s"), ("--for", "'99999999999s'", "24h")),
                ((self.url, "--timeout", "-1s"), ("--timeout", "'-1s'", "10ms to 10m")),
                ((self.url, "--slow-after", "3s"), ("--slow-after", "3000ms", "2000ms")),
                ((self.url, "--failure-rate", "1.5"), ("--failure-rate", "'1.5'", "at most 1")),
                ((self.url, "--minimum-calls", "0"), ("--minimum-calls", "'0'", "1 to 1000000")),
                ((self.url, "--minimum-calls", "2.5"), ("--minimum-calls", "'2.5'", "whole")),
                ((self.url, "--window", "50ms"), ("--window", "'50ms'", "100ms to 1h")),
                ((self.url, "--open-for", "6m"), ("--open-for", "'6m'", "10ms to 5m")),
                ((self.url, "--backoff", "0.5"), ("--backoff", "'0.5'", "1 to 10")),
                ((self.url, "--probes", "0"), ("--probes", "'0'", "1 to 1000"))):
            with self.subTest(arguments=arguments):
                code, out, err = self.run_to_end(*arguments)
                self.assertEqual((code, out), (64, ""))
                self.assertTrue(re.fullmatch(r"guarded_http: .+\n", err), err)
                self.assertNotRegex(err, "pw|p/w")
                for word in says:
                    self.assertIn(word, err)

    def test_a_small_share_is_above_zero(self):
        code, _, err = self.run_to_end("--demo", "--failure-rate", "0.0000001", "--for", "100ms")
        self.assertEqual((code, err), (0, ""))

    def test_a_password_is_not_printed(self):
        for more in ((), ("--json",)):
            code, out, _ = self.run_to_end(
                "http://me:secret@127.0.0.1:1/?token=secret", "--for", "100ms", *more)
            self.assertEqual(code, 0)
            self.assertIn("http://***@127.0.0.1:1/?***", out)
            self.assertNotIn("secret", out)

    def test_output_that_cannot_be_written_is_not_a_success(self):
        for arguments in (("--help",), ("--demo", "--for", "1h")):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                done = subprocess.run(
                    [os.path.join(programs, "guarded_http"), *arguments],
                    stdout=full, stderr=subprocess.PIPE, text=True, timeout=20, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"\Aguarded_http: the output cannot be written.*\n\Z")

    def test_the_flaky_server_names_the_word_that_is_wrong(self):
        for story, says in (
                ("", "is empty"),
                ("healthy:1s,ill", "'ill'"),
                ("healthy:1s,", "''"),
                ("healthy:soon,failing", "'soon'"),
                ("healthy,failing", "'healthy' needs a length")):
            with self.subTest(story=story):
                server = self.start("flaky_server", story)
                out, err = server.communicate(timeout=5)
                self.assertEqual((server.returncode, out), (64, ""))
                self.assertIn(says, err.splitlines()[0])


if __name__ == "__main__":
    programs = sys.argv.pop(1)
    unittest.main()
