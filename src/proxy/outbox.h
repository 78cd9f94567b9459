// What is to be written to one side of an exchange, and what a full socket left over.
//
// Pieces are gathered, sent in one call, and forgotten. Only when the socket takes less is the rest
// kept: text that lives in shared scratch memory is copied, content stays where it is in the
// receive buffer of the other side, which is not read or moved until the outbox is empty again.
// That is the backpressure of the proxy.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/stream.h"

namespace clockwise::proxy {

// Pieces of one write; scratch of the worker, reused.
class Pieces {
 public:
  void clear() noexcept {
    count_ = 0;
    passing_ = 0;
    size_ = 0;
    passing_size_ = 0;
  }

  // A head, in place of what was here.
  void begin_with(std::span<const std::string_view> head) noexcept {
    clear();
    for (const std::string_view slice : head) passing(slice);
  }
  // Text that does not outlive this event (scratch, framing). Before any content().
  void passing(std::string_view text) noexcept {
    add(text);
    passing_ = count_;
    passing_size_ = size_;
  }
  // Octets that stay in place until they are sent, and static text.
  void staying(std::string_view text) noexcept { add(text); }

  [[nodiscard]] std::span<const iovec> all() const noexcept { return {pieces_, count_}; }
  [[nodiscard]] std::size_t passing_count() const noexcept { return passing_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t passing_size() const noexcept { return passing_size_; }
  [[nodiscard]] bool full() const noexcept { return count_ == kMost; }

  static constexpr std::size_t kMost = 80;  // Gather::kMostSlices and the body's three

 private:
  void add(std::string_view text) noexcept {
    if (text.empty()) return;
    pieces_[count_++] = {const_cast<char*>(text.data()), text.size()};
    size_ += text.size();
  }

  iovec pieces_[kMost];
  std::size_t count_ = 0;
  std::size_t passing_ = 0;  // the first so many pieces are passing text
  std::size_t size_ = 0;
  std::size_t passing_size_ = 0;
};

class Outbox {
 public:
  enum class Result : std::uint8_t { sent, blocked, failed };

  [[nodiscard]] bool empty() const noexcept { return !rest_; }
  void clear() noexcept { rest_.reset(); }

  // Writes the pieces now; on `blocked` the rest is kept and the caller waits for the stream to
  // become writable, then calls flush().
  [[nodiscard]] Result send(io::Stream& to, const Pieces& pieces) {
    if (rest_) return append(pieces);
    const auto written = to.write(pieces.all());
    octets_ += written.size;
    if (written.error) return fail();
    if (written.size == pieces.size()) return Result::sent;
    keep(pieces, written.size);
    return Result::blocked;
  }

  // The same, but of what stays in place the caller writes the rest again; `staid` is how much of
  // it went out. REQUIRES: empty().
  [[nodiscard]] Result send_some(io::Stream& to, const Pieces& pieces, std::size_t& staid) {
    const auto written = to.write(pieces.all());
    octets_ += written.size;
    staid = 0;
    if (written.error) return fail();
    if (written.size >= pieces.passing_size()) {
      staid = written.size - pieces.passing_size();
      return written.size == pieces.size() ? Result::sent : Result::blocked;
    }
    rest_ = std::make_unique<Rest>();
    for (const iovec& piece : pieces.all().first(pieces.passing_count()))
      rest_->text.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
    rest_->text_sent = written.size;
    return Result::blocked;
  }

  [[nodiscard]] Result flush(io::Stream& to) {
    if (!rest_) return Result::sent;
    iovec pieces[3];
    std::size_t count = 0;
    std::size_t size = 0;
    const auto add = [&](std::string_view text) {
      if (text.empty()) return;
      pieces[count++] = {const_cast<char*>(text.data()), text.size()};
      size += text.size();
    };
    add(std::string_view(rest_->text).substr(rest_->text_sent));
    add(rest_->content);
    add(rest_->after);
    const auto written = to.write({pieces, count});
    octets_ += written.size;
    if (written.error) return fail();
    if (written.size == size) {
      rest_.reset();
      return Result::sent;
    }
    advance(written.size);
    return Result::blocked;
  }

  // Octets written since the last call; for the counters.
  [[nodiscard]] std::size_t take_octets() noexcept { return std::exchange(octets_, 0); }

 private:
  struct Rest {
    std::string text;
    std::size_t text_sent = 0;
    std::string_view content;  // in the other side's receive buffer
    std::string_view after;    // static
  };

  Result fail() noexcept {
    rest_.reset();
    return Result::failed;
  }

  void keep(const Pieces& pieces, std::size_t sent) {
    rest_ = std::make_unique<Rest>();
    std::string_view staying[2];
    std::size_t kept = 0;
    const auto all = pieces.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string_view piece{static_cast<const char*>(all[i].iov_base), all[i].iov_len};
      const std::size_t skip = sent < piece.size() ? sent : piece.size();
      sent -= skip;
      piece.remove_prefix(skip);
      if (piece.empty()) continue;
      if (i < pieces.passing_count() || kept == 2) {
        rest_->text.append(piece);
      } else {
        staying[kept++] = piece;
      }
    }
    rest_->content = staying[0];
    rest_->after = staying[1];
  }

  // A second write before the first was done: only heads of 1xx answers come here, so a copy is
  // fine.
  Result append(const Pieces& pieces) {
    std::string all(std::string_view(rest_->text).substr(rest_->text_sent));
    all.append(rest_->content).append(rest_->after);
    for (const iovec& piece : pieces.all()) {
      all.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
    }
    *rest_ = Rest{.text = std::move(all), .text_sent = 0, .content = {}, .after = {}};
    return Result::blocked;
  }

  void advance(std::size_t n) noexcept {
    const std::size_t text_left = rest_->text.size() - rest_->text_sent;
    const std::size_t from_text = n < text_left ? n : text_left;
    rest_->text_sent += from_text;
    n -= from_text;
    const std::size_t from_content = n < rest_->content.size() ? n : rest_->content.size();
    rest_->content.remove_prefix(from_content);
    rest_->after.remove_prefix(n - from_content);
  }

  std::unique_ptr<Rest> rest_;
  std::size_t octets_ = 0;
};

}  // namespace clockwise::proxy
