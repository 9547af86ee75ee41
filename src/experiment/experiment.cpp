#include "experiment/experiment.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <utility>

#include "attention/input_embedding.h"
#include "attention/multi_head_attention.h"
#include "attention/single_head_attention.h"
#include "config/padded_tokens.h"
#include "config/saved_trace_names.h"
#include "config/token_labels.h"
#include "config/tokenizer.h"
#include "core/error.h"
#include "experiment/random_input.h"
#include "experiment/tensor_file.h"
#include "files/safetensors.h"

namespace attn {
namespace {

/// Constructs layers of the config's own kind.
LayerMaker maker_of(const RunConfig& config, std::shared_ptr<const AttentionCore> core) {
  const bool single_head = config.attention.module == ModuleKind::kSingleHead;
  return
      [single_head, core = std::move(core)](const AttentionConfig& sizes) -> std::shared_ptr<MultiHeadAttentionImpl> {
        if (single_head) return std::make_shared<SingleHeadAttentionImpl>(sizes, core);
        return std::make_shared<MultiHeadAttentionImpl>(sizes, core);
      };
}

std::shared_ptr<MultiHeadAttentionImpl> draw_layer(const RunConfig& config, const LayerMaker& maker) {
  torch::manual_seed(config.seed);
  std::shared_ptr<MultiHeadAttentionImpl> layer = maker(config.attention);
  layer->to(find_device(config), scalar_type(config.dtype));
  layer->eval();
  return layer;
}

/// Null when the config has none.
std::shared_ptr<InputEmbeddingImpl> draw_embedding(const RunConfig& config) {
  if (!config.embedding.has_value()) return nullptr;
  auto embedding = std::make_shared<InputEmbeddingImpl>(config.embedding->vocab_size, config.attention.d_model,
                                                        config.attention.max_seq_len, config.embedding->positions);
  embedding->to(find_device(config), scalar_type(config.dtype));
  embedding->eval();
  return embedding;
}

/// Fills the layer, and the embedding if there is one and the file has it, from the config's weights file.
void load_weights(const RunConfig& config, const MultiHeadAttentionImpl& layer, const InputEmbeddingImpl* embedding,
                  std::vector<std::string>& notes) {
  if (!config.weights.has_value()) return;
  load_parameters(SafetensorsFile::load(*config.weights), {&layer, embedding}, config, notes);
}

at::Tensor to_tensor(const std::vector<std::vector<std::int64_t>>& ids) {
  std::vector<std::int64_t> flat;
  for (const auto& item : ids) flat.insert(flat.end(), item.begin(), item.end());
  return at::tensor(flat, at::kLong).view({static_cast<std::int64_t>(ids.size()), -1});
}

/// Padding is about the tokens of x, unless the keys come from a memory.
bool pads_tokens(const RunConfig& config) { return config.padding.has_value() && !config.memory_length.has_value(); }

/// Items of different lengths become T tokens each.
Tokens filled_up(Tokens tokens, const RunConfig& config) {
  return pads_tokens(config) ? padded_to(std::move(tokens), config.T, *config.padding) : tokens;
}

/// A token's id is its word where it has no other.
std::vector<std::vector<std::string>> as_labels(const at::Tensor& tokens, const RunConfig& config) {
  std::vector<std::vector<std::string>> labels;
  for (std::int64_t b = 0; b < tokens.size(0); ++b) {
    auto& item = labels.emplace_back();
    for (std::int64_t t = 0; t < tokens.size(1); ++t) {
      const bool is_padding = pads_tokens(config) && !is_real_key(config, b, t);
      item.push_back(is_padding ? kPaddingLabel : std::to_string(tokens[b][t].item<std::int64_t>()));
    }
  }
  return labels;
}

/// The words in the file's metadata, if it has any that fit.
std::vector<std::vector<std::string>> labels_of(const SafetensorsFile& file, const RunConfig& config,
                                                std::vector<std::string>& notes) {
  const auto found = file.metadata().find("tokens");
  if (found == file.metadata().end()) return {};
  std::optional<std::vector<std::vector<std::string>>> labels = parse_token_labels(found->second, config.B, config.T);
  if (labels.has_value()) return *std::move(labels);
  notes.push_back(file.source_name() +
                  ": metadata \"tokens\" is no JSON array of T words, positions are shown instead");
  return {};
}

/// (B, T_k, d_model)
at::Tensor draw_memory(const RunConfig& config) {
  return random_normal({config.B, key_length(config), config.attention.d_model}, config.seed, RandomStream::kMemory);
}

/// (B, T_k) bool; undefined where there is no padding.
at::Tensor find_real_keys(const RunConfig& config, at::Device device) {
  if (!config.padding.has_value()) return {};
  at::Tensor real = at::empty({config.B, key_length(config)}, at::kBool);
  auto cells = real.accessor<bool, 2>();
  for (std::int64_t b = 0; b < config.B; ++b) {
    for (std::int64_t j = 0; j < key_length(config); ++j) cells[b][j] = is_real_key(config, b, j);
  }
  return real.to(device);
}

/// Tokens, or x where there is no embedding, on the CPU.
void make_input(Experiment& experiment) {
  const RunConfig& config = experiment.config;
  const std::int64_t d_model = config.attention.d_model;
  if (const auto* tensor = std::get_if<TensorInput>(&config.input)) {
    const SafetensorsFile file = SafetensorsFile::load(tensor->file);
    const SafetensorsEntry* entry = file.find(tensor->name);
    if (entry == nullptr || entry->shape != std::vector<std::int64_t>{config.B, config.T, d_model}) {
      throw IoError(file.source_name() + ": tensor \"" + tensor->name + "\" changed while it was being read");
    }
    if (tensor->name == kSavedX && file.find("x") == nullptr) {
      experiment.notes.push_back(file.source_name() + ": has no tensor \"x\", the input is its \"" + kSavedX + "\"");
    }
    experiment.x = to_tensor(*entry, file.source_name(), config.dtype, experiment.notes);
    experiment.token_labels = labels_of(file, config, experiment.notes);
  } else if (const auto* text = std::get_if<TextInput>(&config.input)) {
    Tokens tokens = filled_up(tokenize(*text), config);
    experiment.tokens = to_tensor(tokens.ids);
    experiment.token_labels = std::move(tokens.labels);
  } else if (const auto* ids = std::get_if<TokensInput>(&config.input)) {
    experiment.tokens = to_tensor(filled_up({ids->ids, {}, 0}, config).ids);
  } else if (config.embedding.has_value()) {
    experiment.tokens =
        random_integers({config.B, config.T}, config.embedding->vocab_size, config.seed, RandomStream::kTokens);
  } else {
    experiment.x = random_normal({config.B, config.T, d_model}, config.seed, RandomStream::kInput);
  }
  if (experiment.tokens.has_value() && experiment.token_labels.empty()) {
    experiment.token_labels = as_labels(*experiment.tokens, config);
  }
}

}  // namespace

std::shared_ptr<MultiHeadAttentionImpl> make_layer(const RunConfig& config, std::shared_ptr<const AttentionCore> core) {
  return make_layer(config, maker_of(config, std::move(core)));
}

std::shared_ptr<MultiHeadAttentionImpl> make_layer(const RunConfig& config, const LayerMaker& maker) {
  const std::shared_ptr<MultiHeadAttentionImpl> layer = draw_layer(config, maker);
  const std::shared_ptr<InputEmbeddingImpl> embedding = draw_embedding(config);
  std::vector<std::string> notes;  // told already, by make_experiment()
  load_weights(config, *layer, embedding.get(), notes);
  return layer;
}

Experiment make_experiment(const RunConfig& config) {
  Experiment experiment;
  experiment.config = config;
  experiment.layer = draw_layer(config, maker_of(config, nullptr));
  experiment.embedding = draw_embedding(config);
  load_weights(config, *experiment.layer, experiment.embedding.get(), experiment.notes);

  make_input(experiment);
  const at::Device device = find_device(config);
  if (config.memory_length.has_value()) experiment.memory = draw_memory(config).to(device, scalar_type(config.dtype));
  experiment.real_keys = find_real_keys(config, device);
  if (experiment.tokens.has_value()) {
    const at::NoGradGuard no_grad;
    experiment.tokens = experiment.tokens->to(device);
    experiment.x = experiment.embed();
  } else {
    experiment.x = experiment.x.to(device, scalar_type(config.dtype));
  }
  return experiment;
}

at::Tensor Experiment::embed(AttentionObserver* observer) const {
  // Padding before the tokens shifts them, and an item should not depend on its neighbours' lengths.
  const bool shifted = config.padding == PaddingSide::kLeft && !memory.defined();
  return embedding->forward(tokens.value(), observer, shifted ? real_keys : at::Tensor());
}

at::Device find_device(const RunConfig& config) {
  if (config.device == "cpu") return at::kCPU;
  const at::Device device(config.device);
  if (!torch::cuda::is_available()) {
    throw ResourceError(config.source_name + ": device " + config.device +
                        ": no CUDA device can be used by this LibTorch (" + torch_version() + "), use cpu");
  }
  const auto count = static_cast<std::int64_t>(torch::cuda::device_count());
  if (device.has_index() && device.index() >= count) {
    throw ResourceError(config.source_name + ": device " + config.device +
                        ": not there, this machine has cuda:0 to cuda:" + std::to_string(count - 1));
  }
  return device;
}

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return at::kFloat;
    case Dtype::kFloat64:
      return at::kDouble;
    case Dtype::kBFloat16:
      return at::kBFloat16;
    case Dtype::kFloat16:
      return at::kHalf;
  }
  throw std::logic_error("a dtype without a LibTorch type");
}

std::string torch_version() { return TORCH_VERSION; }

}  // namespace attn
