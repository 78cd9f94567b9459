// The hash functions of the schemes, each as its peer computes it.
//
// Pure functions of the octets; no allocation, no state, any thread. Where a peer has its own idea
// of a well-known function, the comment says so: that is what its keys were placed by.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace clockwise::ring {

// XXH64 and XXH3 of 64 bits (the algorithm's specification: github.com/Cyan4973/xxHash).
[[nodiscard]] inline std::uint64_t xxh64(std::string_view text, std::uint64_t seed = 0) noexcept {
  return XXH64(text.data(), text.size(), seed);
}
[[nodiscard]] inline std::uint64_t xxh3(std::string_view text) noexcept {
  return XXH3_64bits(text.data(), text.size());
}

// Digests (RFC 1321, FIPS 180-4).
using Md5 = std::array<std::uint8_t, 16>;
using Sha1 = std::array<std::uint8_t, 20>;
using Sha256 = std::array<std::uint8_t, 32>;
[[nodiscard]] Md5 md5(std::string_view text) noexcept;
[[nodiscard]] Sha1 sha1(std::string_view text) noexcept;
[[nodiscard]] Sha256 sha256(std::string_view text) noexcept;

// Word `index` of MD5 read little-endian; ketama makes four points of a digest, and hashes keys to
// its first word.
[[nodiscard]] std::uint32_t ketama_word(const Md5& digest, std::size_t index) noexcept;
[[nodiscard]] std::uint32_t ketama_md5(std::string_view key) noexcept;

// The last four octets of SHA-256, little-endian: what the shard director of Varnish takes.
[[nodiscard]] std::uint32_t varnish_sha256(std::string_view text) noexcept;

// CRC-32 (IEEE, reflected), and continued from the checksum of the text before it.
[[nodiscard]] std::uint32_t crc32(std::string_view text) noexcept;
[[nodiscard]] std::uint32_t crc32_after(std::uint32_t before, std::string_view text) noexcept;
// The 15 bits below the highest of CRC-32: `crc` of libmemcached, `crc32` of twemproxy, and nginx
// without `consistent`.
[[nodiscard]] std::uint32_t crc32_high(std::string_view text) noexcept;
// CRC-16 (CCITT, from 0) whose register has 32 bits and is never cut, as twemproxy has it.
[[nodiscard]] std::uint32_t crc16_uncut(std::string_view text) noexcept;

// FNV as libmemcached and twemproxy have it: octets are signed, and of the 64-bit forms the lower
// 32 bits are the result.
[[nodiscard]] std::uint32_t fnv1_32(std::string_view text) noexcept;
[[nodiscard]] std::uint32_t fnv1a_32(std::string_view text) noexcept;
[[nodiscard]] std::uint32_t fnv1_64_low(std::string_view text) noexcept;
[[nodiscard]] std::uint32_t fnv1a_64_low(std::string_view text) noexcept;
// FNV-1a of 64 bits as its authors have it.
[[nodiscard]] std::uint64_t fnv1a_64(std::string_view text) noexcept;

// Bob Jenkins' one-at-a-time; octets are signed, as in libmemcached and twemproxy.
[[nodiscard]] std::uint32_t one_at_a_time(std::string_view text) noexcept;
// Bob Jenkins' lookup3 (hashlittle) from 13, as in libmemcached and twemproxy.
[[nodiscard]] std::uint32_t jenkins(std::string_view text) noexcept;
// Paul Hsieh's SuperFastHash from 0 (not from the length) with a signed third octet at the end, as
// in twemproxy.
[[nodiscard]] std::uint32_t hsieh(std::string_view text) noexcept;
// MurmurHash2 of 32 bits with the seed 0xdeadbeef × length, as in libmemcached and twemproxy.
[[nodiscard]] std::uint32_t murmur2_32(std::string_view text) noexcept;
// MurmurHash2 of 64 bits with the seed 0xc70f6907, as in libstdc++ and Envoy.
[[nodiscard]] std::uint64_t murmur2_64(std::string_view text) noexcept;

// HAProxy's functions, and the mixing that it calls `avalanche`.
[[nodiscard]] std::uint32_t sdbm(std::string_view text) noexcept;
[[nodiscard]] std::uint32_t djb2(std::string_view text) noexcept;
[[nodiscard]] std::uint32_t wt6(std::string_view text) noexcept;
[[nodiscard]] std::uint32_t avalanche(std::uint32_t value) noexcept;

// SipHash-1-3 with a key of zeros, and the same with one octet 0xff behind the text, which is how
// Rust's standard library hashes a string.
[[nodiscard]] std::uint64_t siphash13(std::string_view text) noexcept;
[[nodiscard]] std::uint64_t siphash13_of_str(std::string_view text) noexcept;

}  // namespace clockwise::ring
