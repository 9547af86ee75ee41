// The planted faults of the list by name, and a few more that only tests need.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <utility>

#include "checks/faults/fault.h"
#include "checks/faults/faulty_cores.h"

namespace attn {

/// Layers with the fault of this name.
inline LayerFactory planted(const std::string& name) { return fault_named(name).plant(); }

/// Layers whose scores are multiplied by `factor`.
inline LayerFactory planted_scale(double factor) { return core_fault<OtherScale>(factor)(); }

/// Passes the gradient of q on through a function.
struct GradientOfQueries : AttentionCore {
  explicit GradientOfQueries(std::function<at::Tensor(at::Tensor)> change) : changed(std::move(change)) {}
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    const at::Tensor hooked = q * 1;
    if (hooked.requires_grad()) hooked.register_hook(changed);
    return AttentionCore::compute_scores(hooked, k);
  }
  std::function<at::Tensor(at::Tensor)> changed;
};

}  // namespace attn
