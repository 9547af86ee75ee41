// Another program that uses the library: one causal layer, forward and backward.
#include <attn/attention/multi_head_attention.h>
#include <every_installed_header.h>

#include <ATen/ATen.h>

#include <iostream>

int main() {
  attn::CausalMultiHeadAttention layer(/*d_model=*/16, /*num_heads=*/4, /*max_seq_len=*/8);
  const at::Tensor x = at::randn({2, 5, 16}).set_requires_grad(true);
  const attn::AttentionOutput result = layer->forward(x);
  result.output.sum().backward();

  const bool shape_is_kept = result.output.sizes() == x.sizes();
  const bool gradient_arrived = x.grad().defined() && x.grad().abs().max().item<float>() > 0;
  const bool future_is_hidden = result.weights && result.weights->triu(1).abs().max().item<float>() == 0;
  std::cout << "output " << result.output.sizes() << '\n';
  return shape_is_kept && gradient_arrived && future_is_hidden ? 0 : 1;
}
