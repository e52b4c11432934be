// How locks lie in etcd: keys and values. The keys are those of `etcdctl lock`, of Go's concurrency
// package and of etcd's own Lock service, so that all of them queue behind each other:
//
//     NAME/<lease>        the entry of claim 1 of this lease (hexadecimal, as etcdctl prints it)
//     NAME/<lease>.<n>    of its claim n, n > 1
//
// A key under NAME/ is an entry of NAME only when what follows is the hexadecimal of the very lease
// that the key hangs on. So neither stray keys nor the entries of NAME/CHILD block NAME for us;
// they do block Go, which waits for whatever is under NAME/.
//
// The value of our entries says who owns them, in lines that a person can read:
//
//     trinco/1 KIND N SINCE HELD TOKEN EVICTED
//     who asked the holder to stop
//     and why
//     the owner's information, to the end
//
// SINCE and HELD are milliseconds of the owner's wall clock since 1970; HELD is 0 while nothing is
// known of a grant, and SINCE where it came with the entering: then the entry's own revision makes
// the token. An entry whose value does not begin so, of Go or of an election, is exclusive,
// and so is one of a later format. Our own elections write their value alone, too, which is what
// `etcdctl elect` and Go show.
//
// Records lie under `trinco:records/`, and users' data as it is named (core/lock/data_key.hpp). No
// name of a lock contains ':', so no lock has them in its queue. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock/claim.hpp"
#include "store/etcd/etcd_messages.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail::etcd {

inline constexpr std::string_view records_prefix = "trinco:records/";

// A lease as contracts name it, and back; nullopt for what no lease is called.
[[nodiscard]] std::string lease_text(std::int64_t lease);
[[nodiscard]] std::optional<std::int64_t> lease_number(std::string_view text);

struct entry_place {
    std::string name;
    std::int64_t lease = 0;
    claim_id id;
    bool operator==(const entry_place&) const = default;
};

[[nodiscard]] std::string entry_key(std::string_view name, std::int64_t lease, claim_id id);
// nullopt: not a key of that form.
[[nodiscard]] std::optional<entry_place> place_of_key(std::string_view key);
// As place_of_key, of what really is an entry: its lease is the one in its key.
[[nodiscard]] std::optional<entry_place> entry_of(const key_value& kv);

// Where the entries of a name are, among others.
[[nodiscard]] key_range queue_of(std::string_view name);

struct owner_note {
    seat asks;
    std::int64_t since = 0;  // milliseconds since 1970
    std::int64_t held = 0;
    std::uint64_t token = 0;  // 0: not known, or none
    std::optional<eviction> evicted;
    std::string info;
};

[[nodiscard]] std::string text_of(const owner_note& note);
// nullopt: not written by us.
[[nodiscard]] std::optional<owner_note> note_of(std::string_view value);
// What an entry asks for, whoever made it.
[[nodiscard]] seat seat_of(std::string_view value);

}  // namespace trinco::detail::etcd
