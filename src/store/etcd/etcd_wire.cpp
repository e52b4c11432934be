#include "store/etcd/etcd_wire.hpp"

#include <limits>
#include <utility>

#include "etcd.pb.h"

namespace trinco::detail::etcd {
namespace {

// Reads the whole, or nothing.
template <class Message>
std::optional<Message> read(std::string_view bytes) {
    Message out;
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
        !out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
        return {};
    }
    return out;
}

wire::Compare::CompareResult result_of(comparison::is_t is) {
    switch (is) {
        case comparison::is_t::equal: return wire::Compare::EQUAL;
        case comparison::is_t::greater: return wire::Compare::GREATER;
        case comparison::is_t::less: return wire::Compare::LESS;
        case comparison::is_t::not_equal: break;
    }
    return wire::Compare::NOT_EQUAL;
}

void write(const comparison& from, wire::Compare& to) {
    to.set_key(from.keys.begin);
    to.set_range_end(from.keys.end);
    to.set_result(result_of(from.is));
    switch (from.target) {
        case comparison::target_t::version:
            to.set_target(wire::Compare::VERSION);
            to.set_version(from.number);
            break;
        case comparison::target_t::create_revision:
            to.set_target(wire::Compare::CREATE);
            to.set_create_revision(from.number);
            break;
        case comparison::target_t::mod_revision:
            to.set_target(wire::Compare::MOD);
            to.set_mod_revision(from.number);
            break;
        case comparison::target_t::lease:
            to.set_target(wire::Compare::LEASE);
            to.set_lease(from.number);
            break;
    }
}

wire::RangeRequest::SortOrder order_of(range_request::order_t order) {
    switch (order) {
        case range_request::order_t::ascend: return wire::RangeRequest::ASCEND;
        case range_request::order_t::descend: return wire::RangeRequest::DESCEND;
        case range_request::order_t::none: break;
    }
    return wire::RangeRequest::NONE;
}

wire::RangeRequest::SortTarget target_of(range_request::by_t by) {
    switch (by) {
        case range_request::by_t::version: return wire::RangeRequest::VERSION;
        case range_request::by_t::create_revision: return wire::RangeRequest::CREATE;
        case range_request::by_t::mod_revision: return wire::RangeRequest::MOD;
        case range_request::by_t::key: break;
    }
    return wire::RangeRequest::KEY;
}

void write(const range_request& from, wire::RequestOp& to) {
    auto& out = *to.mutable_request_range();
    out.set_key(from.keys.begin);
    out.set_range_end(from.keys.end);
    out.set_limit(from.limit);
    out.set_sort_order(order_of(from.order));
    out.set_sort_target(target_of(from.by));
    out.set_keys_only(from.keys_only);
    out.set_count_only(from.count_only);
    out.set_min_create_revision(from.min_create_revision);
    out.set_max_create_revision(from.max_create_revision);
}

void write(const put_request& from, wire::RequestOp& to) {
    auto& out = *to.mutable_request_put();
    out.set_key(from.key);
    out.set_value(from.value);
    out.set_lease(from.lease);
}

void write(const erase_request& from, wire::RequestOp& to) {
    auto& out = *to.mutable_request_delete_range();
    out.set_key(from.keys.begin);
    out.set_range_end(from.keys.end);
}

void write(const operation& from, wire::RequestOp& to) {
    std::visit([&](const auto& one) { write(one, to); }, from);
}

key_value read_key(wire::KeyValue& from) {
    return {std::move(*from.mutable_key()),
            std::move(*from.mutable_value()),
            from.create_revision(),
            from.mod_revision(),
            from.version(),
            from.lease()};
}

operation_reply read_operation(wire::ResponseOp& from) {
    operation_reply out;
    if (from.has_response_range()) {
        auto& range = *from.mutable_response_range();
        out.kvs.reserve(static_cast<std::size_t>(range.kvs_size()));
        for (auto& one : *range.mutable_kvs()) out.kvs.push_back(read_key(one));
        out.count = range.count();
        out.more = range.more();
    } else if (from.has_response_delete_range()) {
        out.erased = from.response_delete_range().deleted();
    }
    return out;
}

}  // namespace

std::string encode_txn(const txn_request& what) {
    wire::TxnRequest out;
    for (const auto& one : what.compare) write(one, *out.add_compare());
    for (const auto& one : what.success) write(one, *out.add_success());
    for (const auto& one : what.failure) write(one, *out.add_failure());
    return out.SerializeAsString();
}

std::optional<txn_reply> decode_txn(std::string_view bytes) {
    auto in = read<wire::TxnResponse>(bytes);
    if (!in) return {};
    txn_reply out{in->succeeded(), in->header().revision(), {}};
    for (auto& one : *in->mutable_responses()) out.replies.push_back(read_operation(one));
    return out;
}

std::string encode_grant(std::chrono::seconds ttl) {
    wire::LeaseGrantRequest out;
    out.set_ttl(ttl.count());
    return out.SerializeAsString();
}

std::optional<lease_reply> decode_grant(std::string_view bytes) {
    const auto in = read<wire::LeaseGrantResponse>(bytes);
    if (!in) return {};
    return lease_reply{in->id(), std::chrono::seconds(in->error().empty() ? in->ttl() : 0)};
}

std::string encode_revoke(std::int64_t lease) {
    wire::LeaseRevokeRequest out;
    out.set_id(lease);
    return out.SerializeAsString();
}

std::string encode_facts(std::int64_t lease, bool with_keys) {
    wire::LeaseTimeToLiveRequest out;
    out.set_id(lease);
    out.set_keys(with_keys);
    return out.SerializeAsString();
}

std::optional<lease_facts> decode_facts(std::string_view bytes) {
    auto in = read<wire::LeaseTimeToLiveResponse>(bytes);
    if (!in) return {};
    lease_facts out{std::chrono::seconds(in->ttl()), std::chrono::seconds(in->grantedttl()), {}};
    for (auto& one : *in->mutable_keys()) out.keys.push_back(std::move(one));
    return out;
}

std::string encode_renewal(std::int64_t lease) {
    wire::LeaseKeepAliveRequest out;
    out.set_id(lease);
    return out.SerializeAsString();
}

std::optional<lease_reply> decode_renewal(std::string_view bytes) {
    const auto in = read<wire::LeaseKeepAliveResponse>(bytes);
    if (!in) return {};
    return lease_reply{in->id(), std::chrono::seconds(in->ttl())};
}

std::string encode_watch(std::int64_t id, const watch_request& what) {
    wire::WatchRequest out;
    auto& create = *out.mutable_create_request();
    create.set_key(what.keys.begin);
    create.set_range_end(what.keys.end);
    create.set_start_revision(what.from_revision);
    create.set_watch_id(id);
    create.set_progress_notify(true);
    create.set_fragment(true);
    if (!what.puts) create.add_filters(wire::WatchCreateRequest::NOPUT);
    if (!what.erasures) create.add_filters(wire::WatchCreateRequest::NODELETE);
    return out.SerializeAsString();
}

std::string encode_watch_end(std::int64_t id) {
    wire::WatchRequest out;
    out.mutable_cancel_request()->set_watch_id(id);
    return out.SerializeAsString();
}

std::optional<watch_message> decode_watch(std::string_view bytes) {
    auto in = read<wire::WatchResponse>(bytes);
    if (!in) return {};
    watch_message out{in->watch_id(), in->header().revision(), in->created(),       in->canceled(),
                      in->fragment(), in->compact_revision(),  in->cancel_reason(), {}};
    out.events.reserve(static_cast<std::size_t>(in->events_size()));
    for (auto& one : *in->mutable_events()) {
        out.events.push_back({one.type() == wire::Event::DELETE, read_key(*one.mutable_kv())});
    }
    return out;
}

std::string encode_status() {
    return wire::StatusRequest().SerializeAsString();
}

std::optional<server_status> decode_status(std::string_view bytes) {
    auto in = read<wire::StatusResponse>(bytes);
    if (!in) return {};
    server_status out;
    out.version = in->version();
    out.cluster = in->header().cluster_id();
    out.member = in->header().member_id();
    out.leader = in->leader();
    out.term = in->raftterm();
    out.size = in->dbsize();
    out.size_in_use = in->dbsizeinuse();
    for (auto& one : *in->mutable_errors()) out.errors.push_back(std::move(one));
    return out;
}

std::string encode_members() {
    return wire::MemberListRequest().SerializeAsString();
}

std::optional<std::vector<member>> decode_members(std::string_view bytes) {
    auto in = read<wire::MemberListResponse>(bytes);
    if (!in) return {};
    std::vector<member> out;
    for (auto& one : *in->mutable_members()) {
        member m{one.id(), one.name(), {}, one.islearner()};
        for (auto& url : *one.mutable_clienturls()) m.client_urls.push_back(url);
        out.push_back(std::move(m));
    }
    return out;
}

std::string encode_login(std::string_view user, std::string_view password) {
    wire::AuthenticateRequest out;
    out.set_name(std::string(user));
    out.set_password(std::string(password));
    return out.SerializeAsString();
}

std::optional<std::string> decode_login(std::string_view bytes) {
    auto in = read<wire::AuthenticateResponse>(bytes);
    if (!in) return {};
    return std::move(*in->mutable_token());
}

}  // namespace trinco::detail::etcd
