#include "trace/stored_numbers.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace attn {
namespace {

/// Reads each element as `Bits`, wherever the bytes lie, and turns it into a number.
template <typename Bits, typename Convert>
std::vector<double> read(const SafetensorsEntry& entry, Convert to_number) {
  std::vector<double> numbers(entry.bytes.size() / sizeof(Bits));
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    Bits bits;
    std::memcpy(&bits, entry.bytes.data() + index * sizeof(Bits), sizeof(Bits));
    numbers[index] = to_number(bits);
  }
  return numbers;
}

/// bfloat16 is the upper half of a float32.
double from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

/// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
double from_float16(std::uint16_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace

double epsilon_of(std::string_view dtype) {
  if (dtype == "F64") return 0x1.0p-52;
  if (dtype == "F32") return 0x1.0p-23;
  if (dtype == "F16") return 0x1.0p-10;
  if (dtype == "BF16") return 0x1.0p-7;
  return 0.0;
}

bool holds_numbers(std::string_view dtype) {
  return epsilon_of(dtype) > 0.0 || dtype == "I64" || dtype == "I32" || dtype == "BOOL";
}

std::vector<double> numbers_of(const SafetensorsEntry& entry) {
  const auto as_double = [](auto number) { return static_cast<double>(number); };
  if (entry.dtype == "F64") return read<double>(entry, as_double);
  if (entry.dtype == "F32") return read<float>(entry, as_double);
  if (entry.dtype == "F16") return read<std::uint16_t>(entry, from_float16);
  if (entry.dtype == "BF16") return read<std::uint16_t>(entry, from_bfloat16);
  if (entry.dtype == "I64") return read<std::int64_t>(entry, as_double);
  if (entry.dtype == "I32") return read<std::int32_t>(entry, as_double);
  if (entry.dtype == "BOOL") return read<std::uint8_t>(entry, as_double);
  throw std::logic_error("no numbers of dtype " + entry.dtype);
}

}  // namespace attn
