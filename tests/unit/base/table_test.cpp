#include "base/table.h"

#include <gtest/gtest.h>

namespace clockwise {
namespace {

TEST(Table, AlignsTheFirstColumnLeftAndTheOthersRight) {
  Table table;
  table.add({"server", "share"});
  table.add({"a", "100.00 %"});
  EXPECT_EQ(table.text(),
            "  server      share\n"
            "  a        100.00 %\n");
}

TEST(Table, RowsMayEndEarlyAndLeaveNoBlanksBehind) {
  Table table;
  table.add({"a", "b", "wide one"});
  table.add({"longer"});
  table.add({"c", "", ""});
  EXPECT_EQ(table.text(),
            "  a        b   wide one\n"
            "  longer\n"
            "  c\n");
}

TEST(Table, WithoutRowsIsNothing) { EXPECT_EQ(Table().text(), ""); }

}  // namespace
}  // namespace clockwise
