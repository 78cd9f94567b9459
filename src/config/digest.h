// SHA-256 over pieces of text, for the digest by which operators tell configurations apart.
#pragma once

#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace clockwise::config {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::string_view bytes);
  [[nodiscard]] std::string hex();  // 64 digits; the last call

 private:
  evp_md_ctx_st* context_;
};

}  // namespace clockwise::config
