// The executable trinco-fleet: the whole program, with the stores that are servers. See
// start/executables.hpp.

#include <sys/prctl.h>

#include "apps/trinco/servers/servers.hpp"
#include "apps/trinco/start/start_program.hpp"
#include "apps/trinco/stores/server_stores.hpp"

int main(int argc, char** argv) {
    using namespace trinco::program;
    ::prctl(PR_SET_NAME, "trinco");  // in ps and for killall, too
    offer_servers({
#if TRINCO_REDIS
        redis_server(),
#endif
#if TRINCO_ETCD
            etcd_server(),
#endif
#if TRINCO_CONSUL
            consul_server(),
#endif
    });
    return start_program(argc, argv);
}
