#include "memcached/key.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "memcached/command.h"

namespace clockwise::memcached {
namespace {

constexpr std::string_view kLowerHex = "0123456789abcdef";
constexpr std::string_view kUpperHex = "0123456789ABCDEF";
constexpr std::size_t kDigestOctets = 16;
constexpr std::size_t kKept = kMaxKey - 1 - 2 * kDigestOctets;
constexpr std::int64_t kLongestRelative = std::int64_t{30} * 24 * 60 * 60;
// The server reads an exptime as a number of 32 bits.
constexpr std::int64_t kLatest = std::numeric_limits<std::int32_t>::max();

constexpr bool is_blank(char octet) noexcept { return static_cast<unsigned char>(octet) <= ' '; }

void append_hex(unsigned char octet, std::string_view digits, std::string& text) {
  text += digits[octet >> 4];
  text += digits[octet & 15];
}

// The first half of its SHA-256.
std::string digest_of(std::string_view key) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  EVP_Digest(key.data(), key.size(), hash.data(), nullptr, EVP_sha256(), nullptr);
  std::string digest;
  for (std::size_t i = 0; i < kDigestOctets; ++i) append_hex(hash[i], kLowerHex, digest);
  return digest;
}

}  // namespace

bool is_key(std::string_view key) noexcept {
  return !key.empty() && key.size() <= kMaxKey && std::ranges::none_of(key, is_blank);
}

void append_escaped(std::string_view text, std::string& key) {
  for (const char octet : text) {
    if (!is_blank(octet) && octet != '%') {
      key += octet;
      continue;
    }
    key += '%';
    append_hex(static_cast<unsigned char>(octet), kUpperHex, key);
  }
}

bool digest_if_long(std::string& key) {
  if (key.size() <= kMaxKey) return false;
  const std::string digest = digest_of(key);
  key.resize(kKept);
  key.append("~").append(digest);
  return true;
}

std::string lock_key(std::string_view key, std::string_view key_namespace) {
  std::string lock;
  if (key.starts_with(key_namespace)) lock = key_namespace;
  return lock.append("clockwise-fetch:").append(digest_of(key));
}

std::int64_t exptime_of(std::int64_t seconds, std::int64_t unix_now) noexcept {
  if (seconds <= kLongestRelative) return seconds;
  return unix_now >= kLatest - std::min(seconds, kLatest) ? kLatest : unix_now + seconds;
}

std::int64_t exptime_of_stand_in(std::int64_t exptime, std::chrono::milliseconds life) noexcept {
  const std::int64_t most = std::max<std::int64_t>(1, life.count() / 1000);
  return exptime < 0 ? exptime : exptime == 0 ? most : std::min(exptime, most);
}

}  // namespace clockwise::memcached
