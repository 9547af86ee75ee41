// One planted fault as the program makes it: what people read about it, the conditions under which it changes anything,
// and layers that have it. The families of faults are in *_faults.cpp, all of them in fault_list.cpp.
// Private to this room and its tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attention/attention_core.h"
#include "attention/multi_head_attention.h"
#include "attention/single_head_attention.h"
#include "checks/faults/faults.h"
#include "checks/layer_subject.h"
#include "experiment/experiment.h"

namespace attn {

/// What a fault needs to show. Returns what is missing, "T is 1: ..."; empty: nothing is.
using Need = std::function<std::string(const RunConfig&)>;

/// Makes a factory of faulty layers; each call a fresh one, for faults that keep count.
struct Planting {
  std::function<LayerFactory()> make;
  bool in_core = false;  ///< it replaces the explicit engine, so it needs a config with that engine.

  LayerFactory operator()() const { return make(); }
};

struct FaultEntry {
  FaultInfo info;
  std::vector<Need> needs;  ///< the first that is not met tells why the fault does not apply.
  Planting plant;
};

// The families, in the order of the list.
std::vector<FaultEntry> scale_faults();
std::vector<FaultEntry> softmax_faults();
std::vector<FaultEntry> score_faults();
std::vector<FaultEntry> mask_faults();
std::vector<FaultEntry> window_faults();
std::vector<FaultEntry> own_mask_faults();
std::vector<FaultEntry> padding_faults();
std::vector<FaultEntry> leak_faults();
std::vector<FaultEntry> head_faults();
std::vector<FaultEntry> group_faults();
std::vector<FaultEntry> rope_faults();
std::vector<FaultEntry> cache_faults();
std::vector<FaultEntry> projection_faults();
std::vector<FaultEntry> mixing_faults();
std::vector<FaultEntry> dropout_faults();
std::vector<FaultEntry> gradient_faults();
std::vector<FaultEntry> number_faults();
std::vector<FaultEntry> behaviour_faults();

/// All of them.
const std::vector<FaultEntry>& fault_table();

/// Throws ConfigError for an unknown name, with the nearest known one.
const FaultEntry& fault_named(const std::string& name);

/// Of q and k from N(0, 1), or normed and all alike, before a softcap.
double usual_score(const AttentionConfig& layer);

// What many faults need (fault_needs.cpp).
std::string needs_visible_key(const RunConfig& run);     ///< else every weight and context is 0.
std::string needs_competing_keys(const RunConfig& run);  ///< two for one query, or one beside a sink: else a score says
                                                         ///< nothing, every weight is 1.
std::string needs_two_places(const RunConfig& run);      ///< a score that says something, between two places.
std::string needs_two_tokens(const RunConfig& run);
std::string needs_causal(const RunConfig& run);
std::string needs_a_future(const RunConfig& run);  ///< a causal mask and two tokens.
std::string needs_two_heads(const RunConfig& run);
std::string needs_two_key_heads(const RunConfig& run);
std::string needs_unlike_heads(const RunConfig& run);  ///< whose contexts differ.
std::string needs_head_axis(const RunConfig& run);
std::string needs_half_hidden_row(const RunConfig& run);  ///< a query that sees a key, and one that is hidden.
std::string needs_slope(const RunConfig& run);            ///< no softcap so low that every score is flat.
std::string needs_dropout(const RunConfig& run);
std::string needs_pieces(const RunConfig& run);        ///< a run that can be made in pieces with a cache.
std::string needs_fine_numbers(const RunConfig& run);  ///< a millionth is more than one rounding.

/// Layers of the config's own kind with a faulty core.
template <typename Core, typename... Arguments>
Planting core_fault(Arguments... arguments) {
  return {
      [=] { return [=](const RunConfig& run) { return make_layer(run, std::make_shared<const Core>(arguments...)); }; },
      /*in_core=*/true};
}

/// The same for a core that depends on the run's sizes.
template <typename MakeCore>
Planting sized_core_fault(MakeCore make_core) {
  return {[=] { return [=](const RunConfig& run) { return make_layer(run, make_core(run)); }; }, /*in_core=*/true};
}

/// Layers of a faulty subclass of the multi-head layer.
template <typename Faulty>
Planting multi_head_fault() {
  return {[] {
    return [](const RunConfig& run) {
      return make_layer(run, LayerMaker([](const AttentionConfig& sizes) { return std::make_shared<Faulty>(sizes); }));
    };
  }};
}

/// Layers of a faulty subclass of whichever layer the config asks for. `Faulty` is a template over its base class.
template <template <typename Layer> typename Faulty>
Planting layer_fault() {
  return {[] {
    return [](const RunConfig& run) {
      const bool single_head = run.attention.module == ModuleKind::kSingleHead;
      return single_head ? multi_head_fault<Faulty<SingleHeadAttentionImpl>>()()(run)
                         : multi_head_fault<Faulty<MultiHeadAttentionImpl>>()()(run);
    };
  }};
}

}  // namespace attn
