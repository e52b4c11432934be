#!/usr/bin/env python3
"""Sees every rule of the tidy test fail: a small clean tree, one planted violation at a time."""

import unittest

import tidy
from cpp_source import Source

CLEAN = {
    'README.md': 'See [how it is built](ARCHITECTURE.md).\n',
    'ARCHITECTURE.md': 'Reading order.\n',
    'CMakeLists.txt': 'add_subdirectory(src)\nadd_subdirectory(tests)\n',
    'src/CMakeLists.txt': 'trinco_library(all core/lock/lease.cpp store/store.cpp\n'
                          '               breaker/fleet_sync.cpp)\n',
    'tests/CMakeLists.txt': 'trinco_test(lease_test SOURCES lease_test.cpp)\n',
    'include/trinco/error.hpp': '#pragma once\n\n#include <string>\n',
    'src/core/lock/lease.hpp': '#pragma once\n\n#include "trinco/error.hpp"\n',
    'src/core/lock/lease.cpp': '#include "core/lock/lease.hpp"\n\nint every(int ttl) {\n'
                               '    return ttl / 3;\n}\n',
    'src/store/store.cpp': '#include "core/lock/lease.hpp"\n',
    'src/breaker/fleet_sync.cpp': '#include <vector>\n\nint fleet_window_slices = 0;\n',
    'tests/lease_test.cpp': '#include <gtest/gtest.h>\n\n#include "core/lock/lease.hpp"\n',
}


def long_function(lines):
    return 'void f() {\n' + '    g();\n' * (lines - 2) + '}\n'


class Tidy(unittest.TestCase):
    def rules_with(self, path, text):
        """The rules broken in `path` when it is `text` in the clean tree."""
        findings = list(tidy.check(dict(CLEAN, **{path: text})))
        self.assertTrue(all(f.path == path for f in findings), findings)
        return sorted({f.rule for f in findings})

    def appended(self, path, text):
        return self.rules_with(path, CLEAN[path] + text)

    def test_clean_tree_has_no_findings(self):
        self.assertEqual([], list(tidy.check(CLEAN)))

    def test_finding_names_place_rule_and_cure_in_one_line(self):
        finding = next(tidy.check(dict(CLEAN, **{'README.md': CLEAN['README.md'] + '\t\n'})))
        self.assertEqual('README.md:2: tabs: indent with spaces', str(finding))

    def test_layers(self):
        for path, include in [
                ('src/core/lock/lease.cpp', '"store/lock_store.hpp"'),
                ('src/core/lock/lease.cpp', '"trinco/session.hpp"'),
                ('src/core/lock/lease.cpp', '<unistd.h>'),
                ('include/trinco/error.hpp', '"core/loop.hpp"'),
                ('include/trinco/error.hpp', '<boost/asio.hpp>'),
                ('src/store/store.cpp', '"lock/session.hpp"'),
                ('src/store/store.cpp', '"breaker/fleet_sync.hpp"'),
                ('src/store/store.cpp', '<boost/asio/io_context.hpp>'),
                ('src/store/store.cpp', '<openssl/ssl.h>'),
                ('src/store/store.cpp', '<boost/beast/http.hpp>'),
                ('src/store/store.cpp', '<hiredis/read.h>'),
                ('src/store/store.cpp', '<nghttp2/nghttp2.h>'),
                ('src/store/store.cpp', '<google/protobuf/message_lite.h>'),
                ('src/store/store.cpp', '<sqlite3.h>'),
                ('src/store/store.cpp', '<curl/curl.h>'),
                ('src/store/store.cpp', '<iostream>'),
                ('src/store/store.cpp', '<toml++/toml.h>'),
                ('src/store/store.cpp', '"sim/world.hpp"'),
                ('src/breaker/fleet_sync.cpp', '"core/breaker/window.hpp"'),
                ('src/breaker/fleet_sync.cpp', '"lock/session.hpp"')]:
            with self.subTest(path=path, include=include):
                self.assertEqual(['layers'], self.appended(path, f'#include {include}\n'))

    def test_local_breaker_and_record_never_meet(self):
        for path, include in [('src/core/breaker/local.hpp', 'core/breaker/record.hpp'),
                              ('src/core/breaker/record.hpp', 'core/breaker/local.hpp')]:
            files = dict(CLEAN, **{path: f'#pragma once\n#include "{include}"\n'})
            self.assertIn('layers', [f.rule for f in tidy.check(files)])

    def test_codecs_know_bytes_and_connections_no_purpose(self):
        for path, include in [('src/wire/http1/http_reader.hpp', 'net/byte_stream.hpp'),
                              ('src/net/http_client.hpp', 'store/lock_store.hpp')]:
            files = dict(CLEAN, **{path: f'#pragma once\n#include "{include}"\n'})
            self.assertIn('layers', [f.rule for f in tidy.check(files)])

    def test_include_in_a_comment_or_a_string_is_none(self):
        for text in ['// #include <sqlite3.h>\n', '/*\n#include <sqlite3.h>\n*/\n',
                     'auto s = R"(\n#include <sqlite3.h>\n)";\n']:
            self.assertEqual([], self.appended('src/store/store.cpp', text))

    def test_window_in_fleet_sync(self):
        self.assertEqual(['layers'], self.appended('src/breaker/fleet_sync.cpp',
                                                   'void count(time_window& w);\n'))

    def test_quoted_without_its_namespace(self):
        self.assertEqual(['layers'], self.appended('src/store/store.cpp',
                                                   'auto s = "not " + quoted(value);\n'))
        self.assertEqual([], self.appended('src/store/store.cpp',
                                           'auto s = "not " + detail::quoted(value);\n'))

    def test_renewal_timing_outside_of_the_lease(self):
        for text in ['auto next = now + ttl / 3;\n', 'int renew_every = 5;\n']:
            self.assertEqual(['layers'], self.appended('src/store/store.cpp', text))
        self.assertEqual([], self.appended('src/store/store.cpp', '// every ttl / 3\n'))

    def test_sizes(self):
        path = 'src/store/store.cpp'
        self.assertEqual([], self.rules_with(path, '\n' * 500))
        self.assertEqual(['size'], self.rules_with(path, '\n' * 501))
        self.assertEqual([], self.rules_with(path, long_function(70)))
        self.assertEqual(['function'], self.rules_with(path, long_function(71)))
        self.assertEqual([], self.rules_with(path, '// ' + 'x' * 97 + '\n'))
        self.assertEqual(['width'], self.rules_with(path, '// ' + 'x' * 98 + '\n'))
        self.assertEqual([], self.rules_with('README.md', CLEAN['README.md'] + '|' * 200 + '\n'))

    def test_length_of_python_functions(self):
        files = dict(CLEAN, **{'tests/x.py': 'def f():\n' + '    f()\n' * 70})
        files['tests/CMakeLists.txt'] += '# x.py\n'
        self.assertEqual(['function'], [f.rule for f in tidy.check(files)])

    def test_text(self):
        for rule, text in [
                ('tabs', '\tint x;\n'), ('blanks', 'int x; \n'), ('blanks', 'int x;'),
                ('unfinished', '// TO' 'DO\n'), ('unfinished', '// FIX' 'ME later\n'),
                ('unfinished', '// XX' 'X\n'), ('clock', 'clock_set' 'time(c, &t);\n'),
                ('clock', '// date ' '-s tomorrow\n'), ('paths', '// see /ho' 'me/me/x\n'),
                ('paths', '"/tm' 'p/x"\n'), ('hosts', '// ht' 'tp://packages.real.net/x\n')]:
            with self.subTest(text=text):
                self.assertEqual([rule], self.appended('src/store/store.cpp', text))
        self.assertEqual([], self.appended('README.md', 'http://api.example.com/x http://[::1]:8/ '
                                           'http://127.0.0.1:80/ http://host/ http://a.invalid\n'))

    def test_header_without_pragma_once(self):
        self.assertEqual(['header'], self.rules_with('include/trinco/error.hpp', 'int x;\n'))
        self.assertEqual(['header'], self.rules_with('include/trinco/error.hpp',
                                                     '#include <string>\n#pragma once\n'))

    def test_sleep(self):
        sleeping = '    std::this_thread::sleep_f' 'or(1s);\n'
        self.assertEqual(['sleep'], self.appended('tests/lease_test.cpp', sleeping))
        self.assertEqual(['sleep'], self.appended('src/store/store.cpp', sleeping))
        self.assertEqual([], self.appended('tests/lease_test.cpp', '// sl' 'eep(1) is not used\n'))
        for name in ('lease_realtime_test.cpp', 'torture/hurt.cpp'):
            files = dict(CLEAN, **{'tests/' + name: sleeping})
            files['tests/CMakeLists.txt'] += '# %s\n' % name
            self.assertEqual([], list(tidy.check(files)))

    def test_dead_files(self):
        for path, text in [('src/store/dead.cpp', ''), ('src/store/dead.hpp', '#pragma once\n'),
                           ('src/dead/CMakeLists.txt', ''), ('docs/dead.md', ''),
                           ('scripts/dead', ''), ('tests/dead.py', '')]:
            with self.subTest(path=path):
                self.assertEqual(['dead'], self.rules_with(path, text))

    def test_dead_links(self):
        for target, expected in [('src/store/store.cpp', []), ('src/store', []),
                                 ('src/gone.cpp', ['link']), ('http://example.com/x', [])]:
            with self.subTest(target=target):
                self.assertEqual(expected, self.appended('README.md', f'[it]({target}#part)\n'))

    def test_guarantees_name_tests_that_exist(self):
        proof = {'tests/lease_test.cpp': CLEAN['tests/lease_test.cpp'] + 'TEST(Lease, Ends) {}\n',
                 'README.md': CLEAN['README.md'] + '[g](GUARANTEES.md)\n'}
        for text, expected in [('`Lease.Ends`\n', []), ('`Lease.Lasts`\n', ['guarantee'])]:
            files = dict(CLEAN, **proof, **{'GUARANTEES.md': text})
            self.assertEqual(expected, [f.rule for f in tidy.check(files)])

    def test_binary_file(self):
        self.assertEqual(['text'], self.rules_with('LICENSE', None))


class Functions(unittest.TestCase):
    def spans(self, text):
        return list(Source(text).functions())

    def test_methods_count_and_classes_do_not(self):
        text = ('namespace a {\ntemplate <class R, class... A>\nclass x<R(A...)> {\npublic:\n'
                '    x(int a) : a_{a}, b_(a) {\n    }\n    int f() const noexcept { return 1; }\n'
                'private:\n    int a_{0};\n    enum class e { one };\n};\n}\n')
        self.assertEqual([(5, 6), (7, 7)], self.spans(text))

    def test_a_function_ends_where_its_braces_do(self):
        text = ('auto f(int a = 1)\n    -> int {\n    auto g = [] { return "}"; };  // }\n'
                "    if (a == '}') { g(); }\n    return 1'000;\n}\nint x{3};\nvoid h() {}\n")
        self.assertEqual([(1, 6), (8, 8)], self.spans(text))

    def test_macros_of_tests_are_functions(self):
        self.assertEqual([(1, 3)], self.spans('TEST(A, B) {\n    EXPECT_TRUE(true);\n}\n'))


if __name__ == '__main__':
    unittest.main()
