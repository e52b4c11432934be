// How locks lie in Consul: keys, values and flags. The mutex is that of `consul lock NAME` and of
// Go's api.Lock{Key: "NAME/.lock"}, so that all of them wait for each other:
//
//     NAME/.lock          flags 0x2ddccbc058a50c18, held by the session of its owner
//
// Nobody else is in it: Consul keeps no queue, and whoever waits is known to its own process alone.
// Where keys are `plain`, the lock lies in the key NAME itself: the one of Go's api.Lock{Key}.
//
// The value of ours says who holds it, in lines that a person can read:
//
//     trinco/1 CLAIM SINCE HELD TOKEN EVICTED [LEASE]
//     who asked the holder to stop
//     and why
//     the owner's information, to the end
//
// CLAIM is the number of the claim in its lease. SINCE and HELD are milliseconds of the owner's
// wall clock since 1970. TOKEN is 0 until the value is rewritten: before that it is the key's own
// ModifyIndex. LEASE is there for a permit alone, which is held by another session than its lease.
// A value that does not begin so is of Go, of `consul lock`, of an election of ours, or of a later
// format: nothing is concluded from it.
//
// A lock is deleted when it is given back. Nothing is lost with the key: tokens are indexes of
// Raft, which go on.
//
// A semaphore NAME is that of `consul lock -n N NAME` and of Go's api.Semaphore{Prefix: "NAME"},
// also where keys are `plain`. Each permit has a session of its own:
//
//     NAME/.lock          flags 0xe0f69a2baa414de0, held by nobody: who has the permits, as in
//                         consul_holders.hpp, changed by compare
//     NAME/SESSION        the same flags, held by that session: its value is that of a lock. Of
//                         Go's also whoever waits has one
//
// A holder whose session holds nothing under NAME/ is dead; whoever takes a permit drops it. Who
// gives back the last permit deletes NAME/.lock, as `consul lock` does.
//
// Records lie under `trinco:records/`, and users' data as it is named (core/lock/data_key.hpp). No
// name of a lock contains ':', so that none is among them. What is to expire has its time in its
// flags, which Consul only keeps: 0x74726e, and behind it 40 bits of seconds since 1970. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/consul/consul_messages.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail::consul {

inline constexpr std::uint64_t lock_flags = 0x2ddccbc058a50c18;
// What Go's api.Semaphore marks its keys with.
inline constexpr std::uint64_t semaphore_flags = 0xe0f69a2baa414de0;
inline constexpr std::string_view lock_segment = "/.lock";
inline constexpr std::string_view records_prefix = "trinco:records/";

// Nothing when a path of Consul's API can name the key, else a sentence that begins with it. With a
// segment that is empty, '.' or '..' a transaction can write it and no request read it: the server
// cleans the path, and redirects.
[[nodiscard]] std::optional<std::string> check_segments(std::string_view key);
// Nothing when locks can have this name on Consul, else a sentence.
[[nodiscard]] std::optional<std::string> check_consul_name(std::string_view name);

[[nodiscard]] std::string lock_key(std::string_view prefix, std::string_view name, bool plain);
// The name of the lock that lies there; nullopt: none can.
[[nodiscard]] std::optional<std::string> name_of_key(std::string_view prefix, std::string_view key,
                                                     bool plain);

// Of a semaphore: who has its permits, and one who has one or waits; what they lie under.
[[nodiscard]] std::string semaphore_key(std::string_view prefix, std::string_view name);
[[nodiscard]] std::string contender_key(std::string_view prefix, std::string_view name,
                                        std::string_view session);
[[nodiscard]] std::string contenders_under(std::string_view prefix, std::string_view name);
struct contender {
    std::string name;
    std::string session;
};
// nullopt: nobody's contender can lie there.
[[nodiscard]] std::optional<contender> contender_of_key(std::string_view prefix,
                                                        std::string_view key);

struct owner_note {
    claim_id id;
    std::int64_t since = 0;  // milliseconds since 1970
    std::int64_t held = 0;
    std::uint64_t token = 0;  // 0: the key's ModifyIndex
    std::optional<eviction> evicted;
    std::string lease = {};  // of a permit; else empty
    std::string info;
};

[[nodiscard]] std::string text_of(const owner_note& note);
// nullopt: not written by us.
[[nodiscard]] std::optional<owner_note> note_of(std::string_view value);

// One grant of one name.
struct entry_id {
    std::string session;
    std::uint64_t create_index = 0;
    std::uint64_t lock_index = 0;
    bool operator==(const entry_id&) const = default;
};
[[nodiscard]] entry_id id_of(const key_value& kv);
// Whether the key still is that entry. Whoever puts a value into a key that is held, as `consul kv
// put` does, resets its LockIndex to 0 and changes nothing else of it.
[[nodiscard]] bool is_entry(const key_value& kv, const entry_id& id);

// SESSION/CREATED.LOCKED KEY, by which operators name an entry; of a permit LEASE/ stands before
// it, so that each begins with its lease. nullopt: it is none of these.
[[nodiscard]] std::string handle_of(const key_value& kv);
struct handle_parts {
    entry_id id;
    std::string key;
};
[[nodiscard]] std::optional<handle_parts> parts_of_handle(std::string_view handle);

// Flags of what expires at that second since 1970, and back; 0: never.
[[nodiscard]] std::uint64_t flags_until(std::int64_t second) noexcept;
[[nodiscard]] bool has_expired(const key_value& kv, std::int64_t second) noexcept;

}  // namespace trinco::detail::consul
