#include "cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace attn {
namespace {

using std::chrono::milliseconds;

TEST(Progress, SaysNothingWhereThereIsNoTerminal) {
  std::ostringstream err;
  {
    const Progress progress(err, false, "waiting", milliseconds(0));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, SaysNothingAboutQuickWork) {
  std::ostringstream err;
  { const Progress progress(err, true, "waiting"); }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, ShowsALineAndWipesItAway) {
  std::ostringstream err;
  {
    Progress progress(err, true, "waiting", milliseconds(50));
    progress.set("check causality (1 of 2)");
    std::this_thread::sleep_for(milliseconds(500));
  }
  EXPECT_NE(err.str().find("attn-cli: check causality (1 of 2), 0 s"), std::string::npos) << err.str();
  EXPECT_TRUE(err.str().ends_with("\r\x1b[K"));
  EXPECT_EQ(err.str().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace attn
