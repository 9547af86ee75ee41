#include "checks/check_table.h"

namespace attn {

const std::vector<CheckEntry>& check_table() {
  static const std::vector<CheckEntry> table = {
      {{"shapes", "every step, forward and backward, has the shape its formula gives; dtype and device stay", "steps",
        "Compares the shape of each named step, and of its gradient, with the formula in B, T, d_model, H and d_k; "
        "also "
        "that dtype and device stay what the config says. Sees an axis too many, a missing transpose where the sizes "
        "differ, a silent cast. Cannot see anything that keeps the shapes."},
       check_shapes},
      {{"finite", "no NaN and no infinity in steps, output and gradients, and no gradient that is all zero", "-",
        "Looks at every number of every step, of the output and of all gradients; -inf is right only where a masked "
        "score stands. A parameter that no gradient reaches, or whose gradient is all zero where one is due, is a "
        "failure: dq and dk are rightly 0 only where every row sees one key."},
       check_finite},
      {{"row-sums", "the weights of each query sum to 1", "weights",
        "Sums the weights of each query over the keys; the limit is one rounding and T summed ones. On failure it says "
        "whether columns or heads sum to 1 instead (softmax over the wrong axis), or whether the sums scatter as "
        "active "
        "dropout makes them. Cannot see weights that are wrong and sum to 1."},
       check_row_sums},
      {{"masked-weights", "hidden keys have weight exactly 0, visible ones more", "weights",
        "Every weight outside the declared mask must be exactly 0: no tolerance. Every visible one must be above 0, "
        "unless its score is so low that the format rightly gives 0. Looks at what the layer shows as weights; what it "
        "really uses is judged by effective-mask."},
       check_masked_weights},
      {{"first-token", "the first token sees only itself: its context is its value, exactly", "v, context",
        "With one visible key the weight is 1, so context at t = 0 equals v at t = 0 bit for bit. Does not apply "
        "without "
        "a causal mask or with one token."},
       check_first_token},
      {{"scale", "scores are multiplied by 1/sqrt(d_k)", "q, k, scaled scores",
        "Recovers the factor between scaled scores and raw dot products by least squares, within what rounding can do, "
        "and names the usual mistakes (1, 1/d_k, 1/sqrt(d_model), 1/sqrt(H)). Beside it: with q, k ~ N(0, 1) scaled "
        "scores have variance 1. Cannot say anything when all scores of a query are equal."},
       check_scale},
      {{"causality", "changing tokens from t on changes no bit of any output before t, for every t", "-",
        "For every cut t the tokens from t on are redrawn, sign flipped and tripled, and every earlier output is "
        "compared "
        "bit for bit with an unchanged run of the same shape, slot by slot: no tolerance. Above a budget a sample of "
        "the cuts is taken (it always holds both ends and both sides of every power of two), and the line says so."},
       check_causality},
      {{"mask-control", "with the mask off the same change does move earlier outputs", "a mask switch",
        "The proof that causality can fail here: the causal mask is switched off, the same changes are made, and "
        "earlier "
        "outputs must move. If they do not, something else than the mask keeps the layer causal, or nothing was "
        "tested."},
       check_mask_control},
      {{"sdpa-forward", "context equals scaled_dot_product_attention of the same q, k, v", "q, k, v, context",
        "The captured q, k, v go through every backend of scaled_dot_product_attention that this LibTorch offers, "
        "contiguous and strided, and through loops in float64. In float32 the limit is 1e-6 * max(1, largest value), "
        "or "
        "twice the plain formula's own error if that is more; the same comparison is made in float64, where a bug "
        "stays "
        "and rounding vanishes."},
       check_sdpa_forward},
      {{"sdpa-backward", "dq, dk, dv equal those of scaled_dot_product_attention", "q, k, v, context, gradients",
        "The captured gradient of context goes backward through the same backends and loops, and dq, dk, dv are "
        "compared with the layer's own. Limits as for sdpa-forward, on the largest gradient of the three."},
       check_sdpa_backward},
      {{"determinism", "two runs, watched or not, and a rebuilt layer agree bit for bit", "-",
        "Two runs in eval mode with another input between them, a run with the steps watched, and a layer built once "
        "more "
        "from the same seed must agree bit for bit. Sees noise, state kept between calls, an observer that "
        "interferes."},
       check_determinism},
      {{"dropout", "off in eval; in training drops its share and scales the rest by 1/(1 - p)", "a train switch",
        "In eval the output equals that of the layer with dropout 0, before and after training mode. In training the "
        "dropped share is p within six standard deviations and every survivor is scaled by 1/(1 - p). Does not apply "
        "when "
        "dropout is 0."},
       check_dropout},
  };
  return table;
}

}  // namespace attn
