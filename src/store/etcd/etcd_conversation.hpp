// A call of the store on etcd that takes several requests.
#pragma once

#include "store/conversation.hpp"
#include "store/etcd/etcd_claims.hpp"

namespace trinco::detail::etcd {

template <class Self, class Value>
using conversation = store_conversation<Self, Value, claims>;

}  // namespace trinco::detail::etcd
