"""What the tests of facts of Consul share: servers of their own, and requests to them."""

import base64
import contextlib
import json
import pathlib
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import consul_cluster
from at_once import main
from consul_cluster import LOCK_FLAGS, Cluster, wait_until

__all__ = ['LOCK_FLAGS', 'NOBODY', 'Facts', 'lock', 'main', 'text', 'verb', 'wait_until']

NOBODY = '00000000-0000-0000-0000-000000000000'


def text(value):
    return base64.b64encode(value.encode()).decode()


def lock(key, session, value='v', **more):
    return {'Verb': 'lock', 'Key': key, 'Session': session, 'Value': text(value),
            'Flags': LOCK_FLAGS, **more}


def verb(name, key, **more):
    return {'Verb': name, 'Key': key, **more}


@unittest.skipUnless(consul_cluster.find(), 'there is no Consul; try `make servers`')
class Facts(unittest.TestCase):
    SERVERS = 1
    AGENTS = 0  # that are no servers
    MORE = None
    TOKEN = ''

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix='trinco-consul-'))
        cls.consul = Cluster(pathlib.Path(folder) / 'consul', servers=cls.SERVERS, more=cls.MORE,
                             token=cls.TOKEN, agents=cls.AGENTS)
        cls.addClassCleanup(cls.consul.end)

    def txn(self, *operations, at=None):
        """Status, and what was said: of 200 the rows, of 409 [(operation, what)]."""
        body = json.dumps([{'KV': one} for one in operations])
        answer = self.consul.ask('PUT', '/v1/txn', body, at=at)
        if answer.status == 200:
            return 200, [one['KV'] for one in answer.json()['Results'] or []]
        if answer.status == 409:
            return 409, [(one['OpIndex'], one['What']) for one in answer.json()['Errors']]
        return answer.status, answer.body

    def refused(self, *operations):
        """What one operation was refused for."""
        status, told = self.txn(*operations)
        self.assertEqual((409, 1), (status, len(told)), told)
        return told[0][1]

    def done(self, *operations):
        status, rows = self.txn(*operations)
        self.assertEqual(200, status, rows)
        return rows

    def read(self, query, at=None):
        """Status, index, and how long it took."""
        began = time.monotonic()
        answer = self.consul.ask('GET', query, at=at)
        return answer.status, int(answer.headers['X-Consul-Index']), time.monotonic() - began

    @contextlib.contextmanager
    def soon(self, change):
        """It is made while what is inside waits."""
        timer = threading.Timer(0.3, change)
        timer.start()
        yield
        timer.join()

    def put(self, key, value='1'):
        self.consul.must('PUT', f'/v1/kv/{key}', value)

    def wait_for_end(self, session, at=None):
        wait_until(lambda: not self.consul.must('GET', f'/v1/session/info/{session}', at=at),
                   'its end')
