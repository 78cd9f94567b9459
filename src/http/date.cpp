#include "http/date.h"

#include <chrono>
#include <cstring>

namespace clockwise::http {
namespace {

void put_digits(char* place, unsigned value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    place[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

}  // namespace

Date::Date(std::int64_t unix_seconds) noexcept {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
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

}  // namespace clockwise::http
