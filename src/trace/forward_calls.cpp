#include "trace/forward_calls.h"

#include <optional>

#include "attention/multi_head_attention.h"
#include "attention/sdpa_core.h"

namespace attn {
namespace {

/// Hands every step on, and remembers q, k and v as they enter the scores.
class CoreInputs : public AttentionObserver {
 public:
  explicit CoreInputs(AttentionObserver& next) : next_(next) {}

  void on_step(Step step, const at::Tensor& value) override {
    if (step == Step::kQ || step == Step::kQNormed || step == Step::kQRotated) q = value;
    if (step == Step::kK || step == Step::kKNormed || step == Step::kKRotated || step == Step::kKCached) k = value;
    if (step == Step::kV || step == Step::kVCached) v = value;
    next_.on_step(step, value);
  }

  at::Tensor q, k, v;

 private:
  AttentionObserver& next_;
};

/// Which backend LibTorch has chosen for this call.
std::string backend_of(const Experiment& experiment, const CoreInputs& inputs, const ForwardCall& call) {
  at::Tensor real_keys = experiment.real_keys;
  if (real_keys.defined()) real_keys = real_keys.narrow(1, call.first_key, call.keys);
  const std::optional<at::Tensor> mask =
      experiment.layer->mask({call.queries, call.keys, call.first_query, call.first_key}, real_keys);
  return sdpa_backend(inputs.q, inputs.k, inputs.v, experiment.layer->core_options(call.queries, call.keys, mask));
}

}  // namespace

ForwardResult run_forward_calls(const Experiment& experiment, const at::Tensor& x, AttentionObserver& observer,
                                const BeforeCall& before) {
  const RunConfig& config = experiment.config;
  const bool has_cache = config.cache.has_value();
  const std::int64_t count = has_cache ? 1 + config.cache->steps : 1;
  KeyValueCache cache;
  ForwardResult result;
  std::int64_t position = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    ForwardCall call;
    call.call = number;
    call.queries = config.T;
    call.keys = key_length(config);
    AttentionInput input = experiment.input(x);
    if (has_cache) {
      call.queries = number == 0 ? config.cache->prefill : config.cache->chunk;
      call.first_query = position;
      call.first_key = cache.first_key();
      call.keys = position - call.first_key + call.queries;
      input = tokens_of(input, position, call.queries);
      input.cache = &cache;
    }
    if (before) before(call);
    if (config.attention.engine == Engine::kSdpa) {
      CoreInputs inputs(observer);
      result.output = experiment.layer->forward(input, &inputs).output;
      call.backend = backend_of(experiment, inputs, call);
    } else {
      result.output = experiment.layer->forward(input, &observer).output;
    }
    call.cache_bytes = cache.bytes();
    position += call.queries;
    result.calls.push_back(call);
  }
  return result;
}

}  // namespace attn
