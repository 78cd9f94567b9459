// The octets of one message body as they pass through, whatever frames them.
//
// Pure; the same for requests and responses. Framing is taken off here and written anew by
// BodyWriter: what one parser accepted is never what the next one has to parse.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "http/chunked.h"
#include "http/head.h"

namespace clockwise::proxy {

class BodyReader {
 public:
  enum class State : std::uint8_t { more, done, bad };

  // What one look at the buffer gave.
  struct Part {
    State state;
    std::size_t consumed;  // octets of the buffer that belong to this body
    std::string_view
        data;  // the content among them, moved together at the front of what was consumed
  };

  void reset(http::Body body) noexcept {
    body_ = body;
    left_ = body.length;
    octets_ = 0;
    chunks_ = {};
    state_ = body.kind == http::BodyKind::none ||
                     (body.kind == http::BodyKind::length && body.length == 0)
                 ? State::done
                 : State::more;
  }

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool done() const noexcept { return state_ == State::done; }
  [[nodiscard]] http::BodyKind kind() const noexcept { return body_.kind; }
  [[nodiscard]] std::uint64_t octets() const noexcept { return octets_; }  // of content so far
  // Why it is bad.
  [[nodiscard]] std::string_view error() const noexcept { return chunks_.error(); }

  // Reads all of this body that stands in the `size` octets at `buffer`. Chunked content is moved
  // together in place, so `buffer` must be writable and is changed.
  [[nodiscard]] Part read(char* buffer, std::size_t size) noexcept {
    if (state_ != State::more) return {state_, 0, {}};
    if (body_.kind == http::BodyKind::chunked) return read_chunks(buffer, size);
    std::size_t n = size;
    if (body_.kind == http::BodyKind::length) {
      n = left_ < size ? static_cast<std::size_t>(left_) : size;
      left_ -= n;
      if (left_ == 0) state_ = State::done;
    }
    octets_ += n;
    return {state_, n, {buffer, n}};
  }

  // The sender ended its stream: complete only when that is what ends the body.
  [[nodiscard]] bool end_of_stream() noexcept {
    if (body_.kind == http::BodyKind::until_close) state_ = State::done;
    return done();
  }

  // Octets that may go straight from socket to socket (splice): plain content whose length we know,
  // or that runs until the end of the stream. 0: none.
  [[nodiscard]] std::uint64_t spliceable() const noexcept {
    if (state_ != State::more) return 0;
    if (body_.kind == http::BodyKind::length) return left_;
    return body_.kind == http::BodyKind::until_close ? ~std::uint64_t{0} : 0;
  }
  void spliced(std::uint64_t n) noexcept {
    octets_ += n;
    if (body_.kind != http::BodyKind::length) return;
    left_ -= n;
    if (left_ == 0) state_ = State::done;
  }

 private:
  Part read_chunks(char* buffer, std::size_t size) noexcept {
    std::size_t at = 0;
    char* first = nullptr;
    std::size_t length = 0;
    while (state_ == State::more && at < size) {
      const auto step = chunks_.step({buffer + at, size - at});
      if (!step.data.empty()) {
        char* piece = buffer + (step.data.data() - buffer);
        if (first == nullptr) first = piece;
        if (first + length != piece) std::memmove(first + length, piece, step.data.size());
        length += step.data.size();
      }
      at += step.consumed;
      if (step.state == http::ChunkedDecoder::State::done) state_ = State::done;
      if (step.state == http::ChunkedDecoder::State::bad) state_ = State::bad;
      if (step.consumed == 0 && state_ == State::more) break;
    }
    octets_ += length;
    return {state_, at, {first, length}};
  }

  http::Body body_;
  std::uint64_t left_ = 0;
  std::uint64_t octets_ = 0;
  http::ChunkedDecoder chunks_;
  State state_ = State::done;
};

// Frames content for the other side: `before` + data + `after` is what goes out for one part.
class BodyWriter {
 public:
  void reset(http::BodyKind kind) noexcept { kind_ = kind; }
  [[nodiscard]] http::BodyKind kind() const noexcept { return kind_; }

  // The text before `size` octets of content; lives until the next call.
  [[nodiscard]] std::string_view before(std::size_t size) noexcept {
    if (kind_ != http::BodyKind::chunked || size == 0) return {};
    const auto end = std::to_chars(text_.data(), text_.data() + 16, size, 16).ptr;
    end[0] = '\r';
    end[1] = '\n';
    return {text_.data(), static_cast<std::size_t>(end + 2 - text_.data())};
  }
  // The text after them; `last`: this part ends the body.
  [[nodiscard]] std::string_view after(std::size_t size, bool last) const noexcept {
    if (kind_ != http::BodyKind::chunked) return {};
    constexpr std::string_view kEnd = "\r\n0\r\n\r\n";
    if (size == 0) return last ? kEnd.substr(2) : std::string_view{};
    return last ? kEnd : kEnd.substr(0, 2);
  }

 private:
  http::BodyKind kind_ = http::BodyKind::none;
  std::array<char, 18> text_;
};

}  // namespace clockwise::proxy
