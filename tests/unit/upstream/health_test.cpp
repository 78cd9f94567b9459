#include "upstream/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace clockwise::upstream {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Time = ServerHealth::Time;

constexpr Time kStart{std::chrono::hours(1)};

config::Outlier rules() {
  config::Outlier rules;
  rules.eject = 30s;
  rules.max_eject = 100s;
  return rules;
}

// --- checks -------------------------------------------------------------------------------------

struct CheckCase {
  std::string what;
  std::string results;  // + passed, - failed
  bool usable;
};

void PrintTo(const CheckCase& one, std::ostream* out) { *out << one.what; }

class Checks : public testing::TestWithParam<CheckCase> {};

TEST_P(Checks, DecideByTheirRow) {
  config::Health rules;
  rules.rise = 2;
  rules.fall = 3;
  ServerHealth health;
  for (const char result : GetParam().results) health.checked(result == '+', rules);
  EXPECT_EQ(health.standing() == Standing::usable, GetParam().usable);
}

INSTANTIATE_TEST_SUITE_P(
    Health, Checks,
    testing::Values(CheckCase{"no result yet", "", true},
                    CheckCase{"the first decides by itself", "-", false},
                    CheckCase{"the first decides by itself, well", "+", true},
                    CheckCase{"fewer than fall", "+--", true}, CheckCase{"fall", "+---", false},
                    CheckCase{"one that passes begins the row anew", "+--+--", true},
                    CheckCase{"fewer than rise", "+---+", false}, CheckCase{"rise", "+---++", true},
                    CheckCase{"one that fails begins the row anew", "+---+-+", false},
                    CheckCase{"rise after a bad start", "-++", true}));

TEST(ServerHealth, WithoutChecksItIsUsableAgain) {
  ServerHealth health;
  health.checked(false, {});
  health.forget_checks();
  EXPECT_EQ(health.standing(), Standing::usable);
  health.checked(false, {});  // the first again
  EXPECT_EQ(health.standing(), Standing::unusable);
}

// --- ejections ----------------------------------------------------------------------------------

TEST(ServerHealth, AnEjectionEndsInATrial) {
  ServerHealth health;
  health.eject(kStart, rules(), 0);
  EXPECT_EQ(health.standing(), Standing::unusable);
  EXPECT_FALSE(health.pass_time(kStart + 29s));
  EXPECT_EQ(health.standing(), Standing::unusable);
  EXPECT_TRUE(health.pass_time(kStart + 30s));
  EXPECT_EQ(health.standing(), Standing::on_trial);
  health.tried(true, kStart + 31s, rules(), 0);
  EXPECT_EQ(health.standing(), Standing::usable);
}

TEST(ServerHealth, AFailedTrialEjectsForLongerUpToTheMost) {
  ServerHealth health;
  Time now = kStart;
  health.eject(now, rules(), 0);
  for (const auto length : {30s, 60s, 90s, 100s, 100s}) {
    EXPECT_EQ(health.ejected_until() - now, length);
    now = health.ejected_until();
    ASSERT_TRUE(health.pass_time(now));
    health.tried(false, now, rules(), 0);
    EXPECT_EQ(health.standing(), Standing::unusable);
  }
}

TEST(ServerHealth, ChanceMakesAnEjectionLongerButNotThanTheMost) {
  ServerHealth health;
  health.eject(kStart, rules(), 1);
  EXPECT_EQ(health.ejected_until() - kStart, 33s);
  health = {};
  for (int i = 0; i < 4; ++i) health.eject(kStart, rules(), 1);
  EXPECT_EQ(health.ejected_until() - kStart, 100s);
}

TEST(ServerHealth, AnEjectionIsForgottenAfterAsLongInUse) {
  ServerHealth health;
  health.eject(kStart, rules(), 0);
  health.eject(kStart, rules(), 0);  // 60 s
  ASSERT_TRUE(health.pass_time(kStart + 60s));
  health.tried(true, kStart + 60s, rules(), 0);
  EXPECT_EQ(health.ejections_in_a_row(), 2u);
  EXPECT_FALSE(health.pass_time(kStart + 119s));
  EXPECT_TRUE(health.pass_time(kStart + 120s));
  EXPECT_EQ(health.ejections_in_a_row(), 1u);
  EXPECT_TRUE(health.pass_time(kStart + 180s));
  EXPECT_EQ(health.ejections_in_a_row(), 0u);
  EXPECT_FALSE(health.pass_time(kStart + 1000s));
  EXPECT_EQ(health.standing(), Standing::usable);
}

TEST(ServerHealth, EjectionsThatWouldBeNoLongerAreNotCounted) {
  ServerHealth health;
  config::Outlier rules;
  rules.eject = 100ms;
  rules.max_eject = 200ms;
  for (int i = 0; i < 30; ++i) health.eject(kStart, rules, 0);
  EXPECT_EQ(health.ejections_in_a_row(), 2u);
  EXPECT_EQ(health.ejected_until() - kStart, 200ms);
  rules.max_eject = 100ms;
  health = {};
  for (int i = 0; i < 3; ++i) health.eject(kStart, rules, 0);
  EXPECT_EQ(health.ejections_in_a_row(), 1u);
}

TEST(ServerHealth, AResultOfATrialThatIsNoLongerOneChangesNothing) {
  ServerHealth health;
  health.tried(false, kStart, rules(), 0);
  EXPECT_EQ(health.standing(), Standing::usable);
  health.eject(kStart, rules(), 0);
  health.tried(true, kStart + 1s, rules(), 0);
  EXPECT_EQ(health.standing(), Standing::unusable);
}

TEST(ServerHealth, ChecksAndEjectionMustBothAgree) {
  ServerHealth health;
  health.eject(kStart, rules(), 0);
  health.checked(true, {});
  EXPECT_EQ(health.standing(), Standing::unusable);
  health.forget_ejections();
  EXPECT_EQ(health.standing(), Standing::usable);
  health.forget_checks();
  health.checked(false, {});
  health.eject(kStart, rules(), 0);
  health.pass_time(kStart + 30s);
  EXPECT_EQ(health.standing(), Standing::unusable) << "no trial while its checks fail";
}

// --- of a pool ----------------------------------------------------------------------------------

TEST(PoolHealth, OneServerMayAlwaysBeEjectedAndNeverMoreThanTheShare) {
  EXPECT_EQ(most_ejected(1, 0.5), 1u);
  EXPECT_EQ(most_ejected(3, 0.5), 1u);
  EXPECT_EQ(most_ejected(4, 0.5), 2u);
  EXPECT_EQ(most_ejected(10, 0.3), 3u);  // 0.3 is a little less than it looks
  EXPECT_EQ(most_ejected(100, 0), 1u);
  EXPECT_EQ(most_ejected(4, 1), 4u);
}

TEST(PoolHealth, PanicsBelowTheShareAndAlwaysWithNobody) {
  EXPECT_FALSE(panics(4, 4, 1));
  EXPECT_FALSE(panics(2, 4, 0.5));
  EXPECT_TRUE(panics(1, 4, 0.5));
  EXPECT_FALSE(panics(3, 10, 0.3));
  EXPECT_TRUE(panics(0, 4, 0));
  EXPECT_FALSE(panics(1, 4, 0));
  EXPECT_FALSE(panics(0, 0, 0.5));
}

TEST(PoolHealth, AServerFarBelowTheRestIsAStraggler) {
  config::Outlier rules;
  rules.min_requests = 100;
  rules.success_gap = 0.2;
  const Tally good{1000, 0}, bad{700, 300}, so_so{850, 150}, worst{0, 100}, few{0, 99};
  EXPECT_THAT(stragglers(std::vector{good, bad, good}, rules), ElementsAre(1));
  EXPECT_THAT(stragglers(std::vector{good, so_so, good}, rules), IsEmpty());
  EXPECT_THAT(stragglers(std::vector{bad, good, worst, good}, rules), ElementsAre(2, 0));
  EXPECT_THAT(stragglers(std::vector{bad, bad, bad}, rules), IsEmpty()) << "not one of them alone";
  EXPECT_THAT(stragglers(std::vector{good, few}, rules), IsEmpty());
  EXPECT_THAT(stragglers(std::vector{worst, Tally{50, 0}}, rules), IsEmpty())
      << "no rest to speak of";
  EXPECT_THAT(stragglers(std::vector{worst}, rules), IsEmpty());
  rules.success_gap = 0;
  EXPECT_THAT(stragglers(std::vector{good, worst}, rules), IsEmpty()) << "off";
}

}  // namespace
}  // namespace clockwise::upstream
