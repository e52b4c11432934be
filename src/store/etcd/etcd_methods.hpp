// The names of etcd's methods, as gRPC carries them.
#pragma once

namespace trinco::detail::etcd::method {

inline constexpr const char* txn = "/etcdserverpb.KV/Txn";
inline constexpr const char* watch = "/etcdserverpb.Watch/Watch";
inline constexpr const char* grant = "/etcdserverpb.Lease/LeaseGrant";
inline constexpr const char* revoke = "/etcdserverpb.Lease/LeaseRevoke";
inline constexpr const char* keep_alive = "/etcdserverpb.Lease/LeaseKeepAlive";
inline constexpr const char* time_to_live = "/etcdserverpb.Lease/LeaseTimeToLive";
inline constexpr const char* member_list = "/etcdserverpb.Cluster/MemberList";
inline constexpr const char* status = "/etcdserverpb.Maintenance/Status";
inline constexpr const char* authenticate = "/etcdserverpb.Auth/Authenticate";

}  // namespace trinco::detail::etcd::method
