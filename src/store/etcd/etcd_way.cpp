#include "store/etcd/etcd_way.hpp"

#include <utility>

#include "store/etcd/etcd_fault.hpp"
#include "store/etcd/etcd_methods.hpp"
#include "store/etcd/etcd_wire.hpp"

namespace trinco::detail::etcd {
namespace {

// It heard us and speaks etcd, whatever it thinks of us.
bool is_answer(const wire_status& status) {
    switch (status.code) {
        case wire_code::ok:
        case wire_code::invalid_argument:
        case wire_code::permission_denied:
        case wire_code::unauthenticated:
            return status.good() || status.text.find("etcdserver:") != std::string::npos;
        default: return false;
    }
}

}  // namespace

op etcd_way::ask(std::size_t member, deadline by, unique_function<void(member_word)> done) {
    by_.renew({member, lane::requests});
    return by_.call(
        {member, lane::requests}, method::status, encode_status(), {{}, true}, by,
        [this, member, done = std::move(done)](const wire_status& status,
                                               const std::string&) mutable {
            if (is_answer(status)) return done({.good = true});
            auto what = judge(status, by_.name(member));
            if (status.code == wire_code::deadline_exceeded) {
                what.sentence = by_.name(member) + ": does not answer within 2 s";
            }
            by_.renew({member, lane::requests});
            done({false, what.hopeless, what.code, std::move(what.sentence), status.refused});
        });
}

}  // namespace trinco::detail::etcd
