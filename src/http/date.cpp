#include "http/date.h"

#include <chrono>
#include <cstring>

#include "http/octets.h"

namespace clockwise::http {
namespace {

constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";

void put_digits(char* place, unsigned value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    place[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

}  // namespace

Date::Date(std::int64_t unix_seconds) noexcept {
  constexpr std::string_view kForm = "Sun, 00 Jan 0000 00:00:00 GMT";

  const std::chrono::sys_seconds now{std::chrono::seconds{unix_seconds}};
  const auto day = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{now - day};
  const unsigned weekday = std::chrono::weekday{day}.c_encoding();
  const auto month = static_cast<unsigned>(date.month());

  char* const text = text_.data();
  std::memcpy(text, kForm.data(), kForm.size());
  std::memcpy(text, kDays.data() + 3 * weekday, 3);
  put_digits(text + 5, static_cast<unsigned>(date.day()), 2);
  std::memcpy(text + 8, kMonths.data() + 3 * (month - 1), 3);
  put_digits(text + 12, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  put_digits(text + 17, static_cast<unsigned>(time.hours().count()), 2);
  put_digits(text + 20, static_cast<unsigned>(time.minutes().count()), 2);
  put_digits(text + 23, static_cast<unsigned>(time.seconds().count()), 2);
}

namespace {

// Takes a date apart from the left; once something does not fit, nothing does.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : left_(text) {}

  void expect(std::string_view word) {
    if (left_.size() < word.size() || !same_ignoring_case(left_.substr(0, word.size()), word))
      return fail();
    left_.remove_prefix(word.size());
  }
  unsigned digits(std::size_t count) {
    if (left_.size() < count || !all(left_.substr(0, count), kDigit)) return fail(), 0;
    unsigned value = 0;
    for (const char digit : left_.substr(0, count))
      value = value * 10 + static_cast<unsigned>(digit - '0');
    left_.remove_prefix(count);
    return value;
  }
  // The day of an asctime date: two digits, or a blank and one.
  unsigned padded_day() {
    if (!left_.starts_with(' ')) return digits(2);
    left_.remove_prefix(1);
    return digits(1);
  }
  // Which of the names of three letters stands here, from 1.
  unsigned name_of(std::string_view names) {
    for (std::size_t i = 0; left_.size() >= 3 && i < names.size(); i += 3) {
      if (!same_ignoring_case(left_.substr(0, 3), names.substr(i, 3))) continue;
      left_.remove_prefix(3);
      return static_cast<unsigned>(i / 3 + 1);
    }
    return fail(), 0;
  }
  void long_weekday() {
    constexpr std::array<std::string_view, 7> kLong{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                    "Thursday", "Friday", "Saturday"};
    const std::string_view word = left_.substr(0, left_.find(','));
    for (const std::string_view day : kLong)
      if (same_ignoring_case(word, day)) return left_.remove_prefix(word.size());
    fail();
  }
  void time(unsigned& hour, unsigned& minute, unsigned& second) {
    hour = digits(2);
    expect(":");
    minute = digits(2);
    expect(":");
    second = digits(2);
  }
  [[nodiscard]] bool done() const { return good_ && left_.empty(); }

 private:
  void fail() {
    good_ = false;
    left_ = {};
  }

  std::string_view left_;
  bool good_ = true;
};

struct DateParts {
  unsigned year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  bool short_year = false;
};

// "Sun, 06 Nov 1994 08:49:37 GMT", or by RFC 850 "Sunday, 06-Nov-94 08:49:37 GMT"
bool read_gmt(std::string_view text, bool rfc850, DateParts& d) {
  const std::string_view separator = rfc850 ? "-" : " ";
  d = {};
  DateReader in(text);
  if (rfc850)
    in.long_weekday();
  else
    (void)in.name_of(kDays);
  in.expect(", ");
  d.day = in.digits(2);
  in.expect(separator);
  d.month = in.name_of(kMonths);
  in.expect(separator);
  d.year = in.digits(rfc850 ? 2 : 4);
  d.short_year = rfc850;
  in.expect(" ");
  in.time(d.hour, d.minute, d.second);
  in.expect(" GMT");
  return in.done();
}

// "Sun Nov  6 08:49:37 1994"
bool read_asctime(std::string_view text, DateParts& d) {
  d = {};
  DateReader in(text);
  (void)in.name_of(kDays);
  in.expect(" ");
  d.month = in.name_of(kMonths);
  in.expect(" ");
  d.day = in.padded_day();
  in.expect(" ");
  in.time(d.hour, d.minute, d.second);
  in.expect(" ");
  d.year = in.digits(4);
  return in.done();
}

std::optional<std::int64_t> seconds_of(const DateParts& d, unsigned year) {
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(year)},
                                         std::chrono::month{d.month}, std::chrono::day{d.day}};
  // A leap second is a time that clocks do not have; it counts as the second after.
  if (!date.ok() || d.hour > 23 || d.minute > 59 || d.second > 60) return std::nullopt;
  const std::chrono::sys_days day{date};
  return std::chrono::seconds{day.time_since_epoch()}.count() + std::int64_t{d.hour} * 3600 +
         std::int64_t{d.minute} * 60 + d.second;
}

}  // namespace

std::optional<std::int64_t> parse_date(std::string_view text, std::int64_t now) noexcept {
  DateParts d;
  if (!read_gmt(text, false, d) && !read_gmt(text, true, d) && !read_asctime(text, d))
    return std::nullopt;
  if (!d.short_year) return seconds_of(d, d.year);

  const std::chrono::sys_days today{
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds{std::chrono::seconds{now}})};
  const auto this_year =
      static_cast<unsigned>(static_cast<int>(std::chrono::year_month_day{today}.year()));
  unsigned year = this_year / 100 * 100 + d.year;
  if (year > this_year + 50) year -= 100;
  return seconds_of(d, year);
}

}  // namespace clockwise::http
