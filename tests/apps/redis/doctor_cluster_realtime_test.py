#!/usr/bin/env python3
"""`trinco doctor` and a cluster: what it says to users with few rights, and whom it asks. Takes the
program, a service, and server_fleet, which starts the nodes once for all cases."""

import json
import pathlib
import subprocess
import sys
import unittest

FLEET = sys.argv.pop(3)

import redis_scene  # noqa: E402, F401  takes its words first
from scene import Scene, main, wait_until  # noqa: E402
from servers import Server, find_server  # noqa: E402

HEADER = pathlib.Path(__file__).parents[3] / 'include/trinco/redis.hpp'
SLOT_OF_THE_TRIAL = 5258  # of {probe}: at first of the first primary


def documented_rights():
    """All that a user of a cluster needs, as the header of the driver has it."""
    lines = HEADER.read_text().split('ACL SETUSER trinco on >PASSWORD ')[1].splitlines()
    words = lines[0].split()
    for line in lines[1:]:
        if not line.startswith('//     +'):
            break
        words += line.split()[1:]
    return [*words, '+cluster|slots', '+asking']


class Node(Server):
    """One that server_fleet has started."""

    def __init__(self, port):
        self.port = port
        self.password = None


class Cluster(Scene):
    @classmethod
    def setUpClass(cls):
        if find_server() is None:
            raise unittest.SkipTest('there is no redis-server; make servers fetches one')
        cls.fleet = subprocess.Popen([FLEET, 'cluster', find_server()], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.end_fleet)
        cls.told = json.loads(cls.fleet.stdout.readline())
        cls.nodes = [Node(one['port']) for one in cls.told['processes']]
        cls.primaries = cls.nodes[:3]

    @classmethod
    def end_fleet(cls):
        cls.fleet.stdin.close()
        cls.fleet.wait()
        cls.fleet.stdout.close()

    def as_user(self, *rules):
        for node in self.nodes:
            node.command('ACL', 'SETUSER', 'ann', 'reset', 'on', '>geheim', *rules)
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'geheim'
        return self.told['url'].replace('//', '//ann@')

    def examine(self, url, code=0):
        """{check: finding}"""
        got, out, err = self.run_program('doctor', '-o', 'json', '--breakers', url)
        self.assertEqual((code, ''), (got, err), out)
        found = json.loads(out)['stores'][0]['checks']
        if code == 0:
            self.assertNotIn('bad', {one['level'] for one in found}, out)
        return {one['check']: one for one in found}

    def assert_nothing_is_left(self):
        self.assertEqual([0, 0, 0], [node.command('DBSIZE') for node in self.primaries])

    def test_the_documented_rights_are_enough(self):
        found = self.examine(self.as_user(*documented_rights()))
        self.assertEqual('ok', found['cluster']['level'])
        self.assertIn('3 primary nodes, 16384 of 16384 slots are served; this user may not use '
                      'CLUSTER INFO', found['cluster']['sentence'])
        self.assertEqual(20, found['scripts']['figures']['control']['count'])
        self.assert_nothing_is_left()

    def test_a_right_of_clusters_that_is_missing_is_named_and_how_to_give_it(self):
        for missing in ('cluster|slots', 'asking'):
            rights = [word for word in documented_rights() if word != '+' + missing]
            one = self.examine(self.as_user(*rights, '+acl'), code=77)['rights']
            self.assertEqual('bad', one['level'])
            self.assertIn(missing.replace('cluster|slots', 'CLUSTER SLOTS'), one['sentence'])
            self.assertTrue(one['advice'].startswith('on each node: ACL SETUSER ann '),
                            one['advice'])
            self.assertIn(' +' + missing + ' ', one['advice'])
            rule = one['advice'].split('SETUSER ann ')[1].split()
            found = self.examine(self.as_user(*rule, '+acl'))
            self.assertEqual('ok', found['rights']['level'])

    def test_who_may_everything_is_told_the_state(self):
        found = self.examine(self.told['url'])
        self.assertEqual('3 primary nodes, 16384 of 16384 slots are served',
                         found['cluster']['sentence'])
        self.assertIn('figures', found['scripts'])
        self.assert_nothing_is_left()

    def test_scripts_are_tried_where_their_slot_is(self):
        for owner in (self.primaries[2], self.primaries[0]):
            self.move_slot_to(owner)
            found = self.examine(self.told['url'])
            self.assertEqual(20, found['scripts']['figures']['exchange']['count'])
            self.assertIn(str(owner.port), found['connect']['sentence'])
            self.assert_nothing_is_left()

    def move_slot_to(self, owner):
        name = owner.command('CLUSTER', 'MYID')
        for node in (owner, *self.primaries):
            node.command('CLUSTER', 'SETSLOT', SLOT_OF_THE_TRIAL, 'NODE', name)

        def knows(node):
            for first, last, primary, *_ in node.command('CLUSTER', 'SLOTS'):
                if first <= SLOT_OF_THE_TRIAL <= last:
                    return primary[1] == owner.port
            return False
        wait_until(lambda: all(knows(node) for node in self.nodes), 'the new owner of the slot')


if __name__ == '__main__':
    main()
