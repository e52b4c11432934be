"""An etcd with TLS, whose certificate is for 127.0.0.1 and good.test, and of an authority of its
own; and one that asks for a user and password."""

import subprocess
import unittest

from cluster import Cluster


def _openssl(folder, *words):
    subprocess.run(['openssl', *words], check=True, capture_output=True, cwd=folder)


def make_expired(folder):
    """The name of a certificate of the same server beside those of make_certificates, which was
    valid until yesterday."""
    _openssl(folder, 'x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key',
             '-CAcreateserial', '-out', 'expired.pem', '-days', '-1', '-extfile', 'names')
    return 'expired.pem'


def make_certificates(folder):
    """ca.pem, other.pem (an authority that nobody knows), server.pem and server.key in there."""
    def openssl(*words):
        _openssl(folder, *words)
    try:
        openssl('version')
    except (OSError, subprocess.SubprocessError) as error:
        raise unittest.SkipTest('there is no openssl') from error
    curve = ('ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')
    (folder / 'names').write_text('subjectAltName=IP:127.0.0.1,DNS:good.test\n')
    for name in ('ca', 'other'):
        openssl('req', '-x509', '-newkey', *curve, '-keyout', f'{name}.key', '-out', f'{name}.pem',
                '-days', '2', '-subj', f'/CN={name}')
    openssl('req', '-newkey', *curve, '-keyout', 'server.key', '-out', 'server.csr',
            '-subj', '/CN=server')
    openssl('x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key',
            '-CAcreateserial', '-out', 'server.pem', '-days', '2', '-extfile', 'names')


class Secured(Cluster):
    """`keys`: the folder of the certificates."""
    SCHEME = 'https'

    def __init__(self, folder, keys):
        self.ca = keys / 'ca.pem'
        super().__init__(folder, more=[f'--cert-file={keys}/server.pem',
                                       f'--key-file={keys}/server.key'])

    def ctl(self, *words, **more):
        return super().ctl(f'--cacert={self.ca}', *words, **more)


def ask_for_users(etcd, role, prefix):
    """From now on: root, whose password is secret, and ann with the password pw, who may have what
    begins with the prefix."""
    for words in (('role', 'add', 'root'), ('user', 'add', 'root:secret'),
                  ('user', 'grant-role', 'root', 'root'), ('role', 'add', role),
                  ('role', 'grant-permission', role, 'readwrite', prefix, '--prefix=true'),
                  ('user', 'add', 'ann:pw'), ('user', 'grant-role', 'ann', role),
                  ('auth', 'enable')):
        done = etcd.ctl(*words)
        if done.returncode and 'already exists' not in done.stderr:
            raise AssertionError(f'{words}: {done.stderr}')
    plain = etcd.ctl
    etcd.ctl = lambda *words, **more: plain('--user=root:secret', *words, **more)
