// A matrix of plain numbers: how weights and scores leave LibTorch on their way to a picture or a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attn {

/// Numbers by row. For attention: a row is a query, a column is a key.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;  ///< rows * cols numbers, row after row.

  double& at(std::int64_t row, std::int64_t col) { return values[index(row, col)]; }
  double at(std::int64_t row, std::int64_t col) const { return values[index(row, col)]; }

 private:
  std::size_t index(std::int64_t row, std::int64_t col) const { return static_cast<std::size_t>(row * cols + col); }
};

}  // namespace attn
