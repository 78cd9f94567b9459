#include "cache/policy.h"

#include <algorithm>
#include <array>

#include "cache/lines.h"
#include "http/date.h"
#include "http/octets.h"

namespace clockwise::cache {
namespace {

// RFC 9110 15.1.
constexpr std::array kHeuristic{200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501};

// The final statuses whose meaning we know: those of the IANA registry that a cache may store.
constexpr std::array kUnderstood{
    200, 201, 202, 203, 204, 205, 207, 208, 226, 300, 301, 302, 303, 305, 307, 308, 400, 401,
    402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422,
    423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507, 508, 511};

bool one_of(const auto& statuses, unsigned status) {
  return std::ranges::find(statuses, static_cast<int>(status)) != statuses.end();
}

Seconds in_seconds(std::int64_t ms) { return ms / 1000; }

// The first member of the first line; what is no delta-seconds is no age (5.1).
Seconds age_of(const Lines& lines) {
  if (lines.empty()) return 0;
  const std::string_view first = lines.front().substr(0, lines.front().find(','));
  return parse_seconds(http::trim(first)).value_or(0);
}

bool holds_star(const Lines& lines) {
  return std::ranges::any_of(lines, [](std::string_view line) {
    return !http::each_member(line, [](std::string_view member) { return member != "*"; });
  });
}

// The lifetime that the answer itself gives (4.2.1).
std::optional<Seconds> told_lifetime(const Answer& answer, const Moments& moments) {
  if (answer.control.s_maxage) return answer.control.s_maxage;
  if (answer.control.max_age) return answer.control.max_age;
  if (answer.targeted || !answer.expires) return std::nullopt;
  const Seconds date = answer.date.value_or(in_seconds(moments.received_ms));
  return std::clamp<Seconds>(*answer.expires - date, 0, kForever);
}

// The lifetime that we give it; nothing: none.
std::optional<Seconds> guessed_lifetime(const Answer& answer, const Moments& moments,
                                        const Settings& settings) {
  if (!one_of(kHeuristic, answer.status) && !answer.control.is_public) return std::nullopt;
  if (settings.heuristic && answer.last_modified) {
    const Seconds date = answer.date.value_or(in_seconds(moments.received_ms));
    const auto part = static_cast<double>(date - *answer.last_modified) * *settings.heuristic;
    if (part >= 1) return std::min(static_cast<Seconds>(part), kLongestHeuristic);
  }
  const bool negative = answer.status == 404 || answer.status == 410;
  const Seconds ttl =
      negative && settings.negative_ttl > 0 ? settings.negative_ttl : settings.default_ttl;
  return ttl > 0 ? std::optional(ttl) : std::nullopt;
}

Seconds initial_age(const Answer& answer, const Moments& moments) {
  const Seconds received = in_seconds(moments.received_ms);
  const Seconds apparent = answer.date ? std::max<Seconds>(0, received - *answer.date) : 0;
  const Seconds delay =
      in_seconds(std::max<std::int64_t>(0, moments.received_ms - moments.requested_ms));
  return std::min(std::max(apparent, answer.age + delay), kForever);
}

bool allowed_despite_authorization(const Directives& control) {
  return control.is_public || control.must_revalidate || control.s_maxage;
}

std::optional<NotStored> refusal(const Asked& asked, const Answer& answer,
                                 const Settings& settings) {
  const Directives& control = answer.control;
  if (!http::is_read(asked.method) || asked.has_body) return NotStored::method;
  if (asked.control.no_store) return NotStored::request;
  const bool final = answer.status >= 200 && answer.status != 206 && answer.status != 304;
  const bool understood = one_of(kUnderstood, answer.status);
  if (!final || (control.must_understand && !understood)) return NotStored::status;
  if (control.no_store && !control.must_understand) return NotStored::no_store;
  if (control.is_private) return NotStored::is_private;
  if (asked.authorization && !allowed_despite_authorization(control))
    return NotStored::authorization;
  if (answer.vary_on_all) return NotStored::vary;
  if (answer.set_cookie && settings.set_cookie == SetCookie::bypass && !control.is_public &&
      !control.s_maxage)
    return NotStored::set_cookie;
  return std::nullopt;
}

std::uint32_t narrow(Seconds seconds) {
  return static_cast<std::uint32_t>(std::clamp<Seconds>(seconds, 0, kForever));
}

Terms terms_of(const Answer& answer, const Moments& moments, const Settings& settings) {
  const Directives& control = answer.control;
  Terms terms;
  terms.received_ms = moments.received_ms;
  terms.initial_age = narrow(initial_age(answer, moments));
  terms.validate_always = control.no_cache;
  terms.never_stale = control.no_cache || control.must_revalidate || control.proxy_revalidate ||
                      control.s_maxage.has_value();
  terms.immutable = control.immutable;
  terms.has_validator = answer.has_etag || answer.last_modified.has_value();
  terms.for_authorized = allowed_despite_authorization(control);
  terms.stale_while_revalidate =
      narrow(control.stale_while_revalidate.value_or(settings.stale_while_revalidate));
  terms.stale_if_error = narrow(control.stale_if_error.value_or(settings.stale_if_error));
  return terms;
}

}  // namespace

Asked asked_of(std::string_view octets, const http::RequestHead& head) {
  Asked asked;
  asked.method = head.method_id;
  asked.has_body = head.body.kind != http::BodyKind::none &&
                   !(head.body.kind == http::BodyKind::length && head.body.length == 0);
  asked.authorization = !lines_of(octets, head.fields, "authorization").empty();
  asked.control = parse_cache_control(lines_of(octets, head.fields, "cache-control"));
  return asked;
}

Answer answer_of(std::string_view octets, const http::ResponseHead& head,
                 std::span<const std::string_view> targeted, const Moments& moments) {
  const auto lines = [&](std::string_view name) { return lines_of(octets, head.fields, name); };
  const Seconds now = in_seconds(moments.received_ms);
  const auto date = [&](std::string_view name) -> std::optional<Seconds> {
    const Lines found = lines(name);
    return found.size() == 1 ? http::parse_date(found.front(), now) : std::nullopt;
  };
  Answer answer;
  answer.status = head.status;
  for (const std::string_view name : targeted) {
    if (answer.targeted) break;
    if (auto control = parse_targeted(lines(name))) {
      answer.control = std::move(*control);
      answer.targeted = true;
    }
  }
  if (!answer.targeted) answer.control = parse_cache_control(lines("cache-control"));
  answer.date = date("date");
  answer.last_modified = date("last-modified");
  if (!lines("expires").empty()) answer.expires = date("expires").value_or(Answer::kPast);
  answer.age = age_of(lines("age"));
  answer.has_etag = !lines("etag").empty();
  answer.set_cookie = !lines("set-cookie").empty();
  answer.vary_on_all = holds_star(lines("vary"));
  return answer;
}

Verdict judge(const Asked& asked, const Answer& answer, const Moments& moments,
              const Settings& settings) {
  Verdict verdict;
  verdict.refused = refusal(asked, answer, settings);
  if (verdict.refused) return verdict;

  verdict.terms = terms_of(answer, moments, settings);
  const auto told = told_lifetime(answer, moments);
  const auto guessed = told ? std::nullopt : guessed_lifetime(answer, moments, settings);
  verdict.terms.lifetime = narrow(told.value_or(guessed.value_or(0)));
  // What is stale at once is still worth keeping when the origin can confirm it, or has said that
  // it may be given all the same. Our own stale_if_error is no reason: it would keep everything.
  const bool worth = verdict.terms.lifetime > verdict.terms.initial_age ||
                     verdict.terms.has_validator || verdict.terms.stale_while_revalidate > 0 ||
                     (answer.control.stale_if_error.value_or(0) > 0 && !verdict.terms.never_stale);
  const bool may = told || guessed || answer.control.is_public || answer.control.no_cache ||
                   one_of(kHeuristic, answer.status);
  if (!worth || !may) verdict.refused = NotStored::lifetime;

  verdict.dropped_fields = answer.control.private_fields;
  for (const std::string& name : answer.control.no_cache_fields)
    verdict.dropped_fields.push_back(name);
  if (answer.set_cookie && settings.set_cookie == SetCookie::strip)
    verdict.dropped_fields.emplace_back("set-cookie");
  return verdict;
}

Seconds current_age(const Terms& terms, std::int64_t now_ms) noexcept {
  // A clock that went back makes nothing younger than it was when it came.
  const Seconds residence = in_seconds(std::max<std::int64_t>(0, now_ms - terms.received_ms));
  return std::min<Seconds>(terms.initial_age + residence, kForever);
}

Use use_of(const Terms& terms, const Asked& asked, std::int64_t now_ms,
           const Settings& settings) noexcept {
  if (terms.validate_always) return Use::validate;
  const Seconds age = current_age(terms, now_ms);
  Seconds lifetime = terms.lifetime;
  Seconds forgiven = 0;
  if (settings.honour_requests) {
    const Directives& wanted = asked.control;
    const bool steady = terms.immutable && age < lifetime;
    if (wanted.no_cache && !steady) return Use::validate;
    if (wanted.max_age && !steady) lifetime = std::min(lifetime, *wanted.max_age);
    if (wanted.min_fresh) lifetime -= *wanted.min_fresh;
    if (wanted.max_stale && !terms.never_stale) forgiven = *wanted.max_stale;
  }
  if (age < lifetime || (forgiven > 0 && age < lifetime + forgiven)) return Use::fresh;
  // Who asks for a fresher answer than the origin promised does not want a stale one.
  const bool content = lifetime == terms.lifetime;
  if (content && !terms.never_stale && age < lifetime + terms.stale_while_revalidate)
    return Use::stale;
  return Use::validate;
}

bool may_stand_in(const Terms& terms, std::int64_t now_ms) noexcept {
  return !terms.never_stale &&
         current_age(terms, now_ms) < Seconds{terms.lifetime} + terms.stale_if_error;
}

bool invalidates(http::Method method, unsigned status) noexcept {
  using http::Method;
  const bool safe = http::is_read(method) || method == Method::options || method == Method::trace;
  return !safe && status >= 200 && status < 400;
}

}  // namespace clockwise::cache
