#!/usr/bin/env python3
"""Crowds of processes on one real Consul: once, several names at a time beside strangers that nest.
Takes the paths of the program and of the child that takes all of some locks."""

import os
import shlex
import sys

CHILD = os.path.abspath(sys.argv.pop(2))

from consul_scene import TTL, ConsulScene, main  # noqa: E402
from crowds import Once, SeveralAtATime  # noqa: E402


class OnceOnConsul(Once, ConsulScene):
    TTL = TTL
    APART = True


class SeveralOnConsul(SeveralAtATime, ConsulScene):
    TTL = TTL
    CHILD = CHILD

    def nest(self, outer, inner, script):
        at = '-http-addr=' + self.consul.nodes[0].address_and_port
        within = shlex.join(self.consul_words(inner, at, '--', script))
        return self.consul_words(outer, at, '--', within)


if __name__ == '__main__':
    main()
