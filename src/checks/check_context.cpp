#include "checks/check_context.h"

#include <utility>

#include "experiment/random_input.h"

namespace attn {

CheckContext::CheckContext(Subject& subject, RunConfig run, at::Tensor x, bool quick)
    : run_(std::move(run)), x_(x.detach()), quick_(quick) {
  const std::shared_ptr<Subject> not_owned(&subject, [](Subject*) {});
  subject_ = std::make_unique<GuardedSubject>(run_, not_owned);
}

const CapturedPass* CheckContext::pass() {
  if (!pass_made_) pass_ = capture_pass(*subject_, run_, x_, draw(x_.sizes().vec(), Draw::kGradient));
  pass_made_ = true;
  return pass_.has_value() ? &*pass_ : nullptr;
}

const at::Tensor* CheckContext::step(Step step, const std::vector<std::int64_t>& expected_shape) {
  const CapturedPass* captured = pass();
  return captured == nullptr ? nullptr : captured_step(captured->steps, step, expected_shape);
}

at::Tensor CheckContext::draw(const std::vector<std::int64_t>& shape, Draw use) const {
  constexpr std::uint64_t kFarApart = 0x100000001b3;  // any odd number: neighbouring seeds stay different streams
  const std::uint64_t seed = run_.seed + static_cast<std::uint64_t>(use) * kFarApart;
  return random_normal(shape, seed, RandomStream::kChecks).to(x_.options());
}

}  // namespace attn
