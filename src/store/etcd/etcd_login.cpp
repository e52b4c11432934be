#include "store/etcd/etcd_login.hpp"

#include <utility>

#include "store/etcd/etcd_fault.hpp"
#include "store/etcd/etcd_methods.hpp"
#include "store/etcd/etcd_wire.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto answer_within = 1s;  // of one member; then another is asked
constexpr auto refused_for = 5s;

}  // namespace

etcd_login::etcd_login(loop& on, etcd_way& way, std::string user, std::string password,
                       unique_function<void()> changed)
    : loop_(on),
      way_(way),
      user_(std::move(user)),
      password_(std::move(password)),
      changed_(std::move(changed)),
      ready_(user_.empty()) {}

bool etcd_login::is_refused() const {
    return !ready_ && loop_.now() < refused_until_;
}

void etcd_login::want() {
    if (ready_ || is_refused() || !way_.is_up()) return;
    const auto endpoint = way_.current();
    // One that was left while it was asked may never answer.
    if (asking_ && asked_ == endpoint) return;
    asking_ = true;
    asked_ = endpoint;
    ask_ = way_.by().call({endpoint, lane::requests}, method::authenticate,
                          encode_login(user_, password_), {{}, true}, loop_.now() + answer_within,
                          [this, endpoint](const wire_status& status, const std::string& reply) {
                              answered(endpoint, status, reply);
                          });
}

void etcd_login::expired(const std::string& used) {
    if (user_.empty() || used != token_ || !ready_) return;
    ready_ = false;
    token_.clear();
}

void etcd_login::answered(std::size_t endpoint, const wire_status& status,
                          const std::string& reply) {
    asking_ = false;
    if (status.good()) {
        token_ = decode_login(reply).value_or("");
        ready_ = true;
        trouble_.clear();
    } else if (status.text.find("authentication is not enabled") != std::string::npos) {
        ready_ = true;  // as etcd's own clients do: the server asks nobody who he is
        trouble_.clear();
    } else {
        const auto what = judge(status, way_.by().name(endpoint));
        if (what.leave) {
            way_.failed(endpoint, what.sentence);
            want();
            return;
        }
        trouble_ = what.sentence;
        refused_until_ = loop_.now() + refused_for;
    }
    changed_();
}

}  // namespace trinco::detail::etcd
