#include "attention/shapes.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

template <typename Work>
std::string shape_error(Work work) {
  try {
    work();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no ShapeError";
}

TEST(CheckShape, AcceptsExactAndAnySizes) {
  EXPECT_NO_THROW(check_shape(at::zeros({2, 3}), "x", {2, 3}));
  EXPECT_NO_THROW(check_shape(at::zeros({2, 3}), "x", {kAnySize, 3}));
  EXPECT_NO_THROW(check_shape(at::zeros({}), "x", {}));
}

TEST(CheckShape, SaysTheRuleAndWhatCame) {
  EXPECT_EQ(shape_error([] {
              check_shape(at::zeros({2, 3}), "query", {2, 4});
            }),
            "query: expected shape (2, 4), got (2, 3)");
  EXPECT_EQ(shape_error([] {
              check_shape(at::zeros({2, 3}), "query", {2, kAnySize, 4});
            }),
            "query: expected shape (2, -1, 4) (-1 is any), got (2, 3)");
  EXPECT_EQ(shape_error([] { check_shape(at::Tensor(), "query", {2}); }), "query: expected shape (2), got no tensor");
}

TEST(CheckSameKind, SaysBothDtypesAndDevices) {
  EXPECT_NO_THROW(check_same_kind(at::zeros({1}), "k", at::ones({2}), "q"));
  EXPECT_EQ(shape_error([] { check_same_kind(at::zeros({1}, at::kDouble), "k", at::zeros({1}), "q"); }),
            "k is Double on cpu, but q is Float on cpu");
}

}  // namespace
}  // namespace attn
