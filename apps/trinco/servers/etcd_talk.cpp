#include "apps/trinco/servers/etcd_talk.hpp"

#include "store/etcd/etcd_client.hpp"
#include "store/etcd/http2_transport.hpp"

namespace trinco::program {

using namespace std::chrono_literals;

etcd_talk::etcd_talk(detail::etcd_target to) {
    namespace etcd = detail::etcd;
    on_.start();
    static_cast<void>(
        detail::run_and_wait(on_, 2s, [this, at = place_, to = std::move(to)]() mutable {
            at->link = etcd::make_etcd_client(
                on_, etcd::make_http2_transport(on_, std::move(to.members), std::move(to.tls)),
                {std::move(to.user), std::move(to.password)});
        }));
}

etcd_talk::~etcd_talk() {
    static_cast<void>(detail::run_and_wait(on_, 2s, [at = place_] { at->link.reset(); }));
    on_.stop(2s);
}

std::string etcd_talk::trouble() {
    const auto said = std::make_shared<std::string>();
    const auto failed = detail::run_and_wait(on_, 2s, [said, at = place_] {
        if (at->link) *said = at->link->trouble();
    });
    return failed ? std::string() : *said;
}

}  // namespace trinco::program
