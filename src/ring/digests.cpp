// Hash functions that libraries compute for us (see hashes.h).
//
// OpenSSL's one-shot and EVP forms allocate; the old three-step form does not.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <zlib.h>

#include "ring/hashes.h"

namespace clockwise::ring {

Md5 md5(std::string_view text) noexcept {
  MD5_CTX state;
  Md5 digest;
  MD5_Init(&state);
  MD5_Update(&state, text.data(), text.size());
  MD5_Final(digest.data(), &state);
  return digest;
}

Sha1 sha1(std::string_view text) noexcept {
  SHA_CTX state;
  Sha1 digest;
  SHA1_Init(&state);
  SHA1_Update(&state, text.data(), text.size());
  SHA1_Final(digest.data(), &state);
  return digest;
}

Sha256 sha256(std::string_view text) noexcept {
  SHA256_CTX state;
  Sha256 digest;
  SHA256_Init(&state);
  SHA256_Update(&state, text.data(), text.size());
  SHA256_Final(digest.data(), &state);
  return digest;
}

std::uint32_t crc32_after(std::uint32_t before, std::string_view text) noexcept {
  if (text.empty()) return before;  // of a null pointer zlib makes a fresh start
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

std::uint32_t crc32(std::string_view text) noexcept { return crc32_after(0, text); }

}  // namespace clockwise::ring
