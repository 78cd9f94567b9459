#include "config/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace clockwise::config {

Digest::Digest() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_, EVP_sha256(), nullptr);
}

Digest::~Digest() { EVP_MD_CTX_free(context_); }

void Digest::add(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }

std::string Digest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int length = 0;
  EVP_DigestFinal_ex(context_, bytes.data(), &length);
  std::string out;
  for (unsigned int i = 0; i < length; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

}  // namespace clockwise::config
