// One file of tests/data/, as scripts/make_fixtures writes it: a layer's config, weights, input, and what PyTorch in
// Python made of them.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "attention/multi_head_attention.h"
#include "attention/single_head_attention.h"
#include "config/config_file.h"
#include "files/safetensors.h"

namespace attn::test {

struct LayerFixture {
  RunConfig config;
  std::map<std::string, at::Tensor> tensors;

  const at::Tensor& at(const std::string& name) const { return tensors.at(name); }
};

inline at::ScalarType scalar_type_of(const SafetensorsEntry& entry) {
  if (entry.dtype == "F32") return at::kFloat;
  if (entry.dtype == "F64") return at::kDouble;
  if (entry.dtype == "I64") return at::kLong;
  throw std::runtime_error(entry.name + ": no fixture has the dtype " + entry.dtype);
}

inline std::string fixture_path(const std::string& name) { return "tests/data/" + name + ".safetensors"; }

inline LayerFixture load_fixture(const std::string& name) {
  const SafetensorsFile file = SafetensorsFile::load(fixture_path(name));
  LayerFixture fixture;
  fixture.config = parse_config(file.metadata().at("config"), name, "tests/data");
  for (const SafetensorsEntry& entry : file.entries()) {
    at::Tensor tensor = at::empty(entry.shape, scalar_type_of(entry));
    std::copy(entry.bytes.begin(), entry.bytes.end(), static_cast<char*>(tensor.data_ptr()));
    fixture.tensors[entry.name] = tensor;
  }
  return fixture;
}

/// The fixture's layer with the fixture's weights, in its dtype.
inline std::shared_ptr<MultiHeadAttentionImpl> make_fixture_layer(const LayerFixture& fixture) {
  const AttentionConfig& config = fixture.config.attention;
  std::shared_ptr<MultiHeadAttentionImpl> layer;
  if (config.module == ModuleKind::kSingleHead) {
    layer = std::make_shared<SingleHeadAttentionImpl>(config);
  } else {
    layer = std::make_shared<MultiHeadAttentionImpl>(config);
  }
  layer->to(fixture.at("x").scalar_type());
  layer->eval();
  const at::NoGradGuard no_grad;
  for (auto& parameter : layer->named_parameters()) parameter.value().copy_(fixture.at(parameter.key()));
  return layer;
}

/// Every attention case of scripts/make_fixtures.
inline std::vector<std::string> attention_fixtures() {
  std::vector<std::string> names;
  for (const std::string dtype : {"_f32", "_f64"}) {
    for (const std::string layout : {"fused", "fused_per_head", "separate", "single_head"}) {
      names.push_back("attention_" + layout + dtype);
      names.push_back("attention_" + layout + "_bias" + dtype);
    }
    names.push_back("attention_single_head_d_k_5" + dtype);
    names.push_back("attention_separate_d_k_5" + dtype);
  }
  for (const std::string layout : {"fused", "fused_per_head", "separate"}) {
    for (const std::string what : {"_not_causal", "_T_1", "_T_7_H_2"}) {
      names.push_back("attention_" + layout + what + "_f32");
    }
  }
  return names;
}

}  // namespace attn::test
