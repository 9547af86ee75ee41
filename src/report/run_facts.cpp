#include "report/run_facts.h"

#include <algorithm>
#include <ostream>
#include <utility>
#include <variant>

#include "core/text.h"
#include "report/feature_facts.h"
#include "report/table.h"

namespace attn {
namespace {

struct InputWords {
  std::string operator()(const RandomInput&) const { return "random"; }
  std::string operator()(const TensorInput& input) const {
    return "tensor " + in_quotes(input.name) + " of " + printable(input.file.filename().string());
  }
  std::string operator()(const TokensInput&) const { return "token ids"; }
  std::string operator()(const TextInput& input) const {
    return "text, tokenized by " + to_string(input.tokenizer) +
           (input.file ? ", from " + printable(input.file->filename().string()) : "");
  }
};

std::string bias_words(const AttentionConfig& config) {
  if (config.bias == config.output_bias()) return config.bias ? "bias" : "no bias";
  return config.bias ? "bias of q, k and v only" : "bias of the output only";
}

constexpr std::size_t kNameWidth = 7;

void write_fact(std::ostream& out, const RunFact& fact) {
  constexpr std::size_t kIndent = kNameWidth + 4;
  const std::string lines = wrapped(printable(fact.words), kIndent);
  out << "  " << padded(fact.name, kNameWidth) << "  " << lines.substr(std::min(kIndent, lines.size()));
}

}  // namespace

std::string layer_facts(const AttentionConfig& config) {
  std::vector<std::string> facts = {to_string(config.module), "qkv " + to_string(config.qkv), bias_words(config),
                                    config.causal ? "causal" : "not causal"};
  if (config.window) facts.push_back("window " + std::to_string(*config.window));
  if (config.mask) facts.push_back("mask " + mask_kind(*config.mask));
  if (config.rope) facts.push_back("rope " + to_string(config.rope->style));
  if (config.qk_norm) facts.emplace_back("qk_norm");
  if (config.given_scale) facts.push_back("scale " + format_number(*config.given_scale));
  if (config.softcap) facts.push_back("softcap " + format_number(*config.softcap));
  if (config.alibi) facts.emplace_back("alibi");
  if (config.sink) facts.emplace_back("sink");
  if (config.dropout > 0.0) facts.push_back("dropout " + format_number(config.dropout));
  if (config.engine != Engine::kExplicit) facts.push_back("engine " + to_string(config.engine));
  return join(facts);
}

std::string shape_facts(const RunConfig& config) {
  const AttentionConfig& layer = config.attention;
  const auto fact = [](const char* letter, std::int64_t size) { return letter + (" " + std::to_string(size)); };
  std::vector<std::string> facts = {fact("B", config.B)};
  if (config.memory_length) {
    facts.push_back(fact("T_q", config.T));
    facts.push_back(fact("T_k", *config.memory_length));
  } else {
    facts.push_back(fact("T", config.T));
  }
  facts.push_back(fact("d_model", layer.d_model));
  facts.push_back(fact("H", layer.H));
  if (layer.H_kv() != layer.H) facts.push_back(fact("H_kv", layer.H_kv()));
  facts.push_back(fact("d_k", layer.d_k()));
  return join(facts);
}

std::string input_facts(const RunConfig& config) {
  std::string facts = std::visit(InputWords{}, config.input);
  if (config.embedding) {
    facts += "; embedding of " + std::to_string(config.embedding->vocab_size) + " tokens, positions " +
             to_string(config.embedding->positions);
  }
  return facts;
}

void write_run_facts(std::ostream& out, std::string_view what, const RunConfig& config, int threads,
                     const std::string& torch_version, bool color, const std::vector<RunFact>& more) {
  const std::string weights =
      config.weights ? "from " + printable(config.weights->filename().string()) : "drawn from the seed";
  const std::string run = config.device + ", " + to_string(config.dtype) + ", seed " + std::to_string(config.seed) +
                          ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") + ", LibTorch " +
                          torch_version;
  out << heading(std::string(what), color) << " of " << printable(config.source_name) << "\n\n";
  std::vector<RunFact> facts = {{"layer", layer_facts(config.attention)}, {"shape", shape_facts(config)}};
  for (RunFact& fact : feature_facts(config)) facts.push_back(std::move(fact));
  facts.insert(facts.end(), {{"input", input_facts(config)}, {"run", run}, {"weights", weights}});
  facts.insert(facts.end(), more.begin(), more.end());
  for (const RunFact& fact : facts) write_fact(out, fact);
  out << '\n';
}

std::string heading(const std::string& text, bool color) { return color ? "\x1b[1m" + text + "\x1b[0m" : text; }

}  // namespace attn
