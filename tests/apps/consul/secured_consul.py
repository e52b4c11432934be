"""A Consul with HTTPS beside HTTP, whose certificate is for 127.0.0.1 and good.test
(make_certificates of etcd's tests)."""

from consul_cluster import Cluster, free_ports


class Secured(Cluster):
    """`keys`: the folder of the certificates; `more`: members of tls.https."""

    def __init__(self, folder, keys, certificate='server.pem', more=None):
        self.keys_folder = keys
        self.certificate = certificate
        self.more_of_tls = more or {}
        self.https_port, = free_ports(1)
        super().__init__(folder)

    def configuration(self, node):
        said = super().configuration(node)
        said['ports']['https'] = self.https_port
        said['tls'] = {'https': {'cert_file': f'{self.keys_folder}/{self.certificate}',
                                 'key_file': f'{self.keys_folder}/server.key',
                                 **self.more_of_tls}}
        return said
