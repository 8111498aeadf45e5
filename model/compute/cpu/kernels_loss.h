// Cross-entropy of rows of logits, with its gradient in place.

static void cross_entropy(float *loss, float *logits, const int32_t *targets, int64_t rows, int64_t v, int grad) {
  for (int64_t r = 0; r < rows; r++, logits += v) {
    int32_t target = targets[r];
    if (target < 0) {
      loss[r] = 0;
      if (grad) memset(logits, 0, (size_t)v * 4);
      continue;
    }
    vf high = vset(-INFINITY), sum = vset(0);
    int64_t whole = v / VL * VL;
    for (int64_t i = 0; i < whole; i += VL) high = vmax(high, vload(logits + i));
    float most = vmost(high);
    for (int64_t i = whole; i < v; i++) most = logits[i] > most ? logits[i] : most;
    float wanted = logits[target];
    for (int64_t i = 0; i < whole; i += VL) {
      vf e = vexp(vload(logits + i) - vset(most));
      sum += e;
      if (grad) vstore(logits + i, e);
    }
    if (whole < v) {
      int n = (int)(v - whole);
      float tail[VL];
      for (int i = 0; i < VL; i++) tail[i] = i < n ? logits[whole + i] - most : -INFINITY;
      vf e = vexp(vload(tail));
      sum += e;
      if (grad) vstoren(logits + whole, e, n);
    }
    float total = vsum(sum);
    loss[r] = logf(total) + (most - wanted);
    if (!grad) continue;
    vf scale = vset(1.0f / total);
    for (int64_t i = 0; i < v; i += VL) {
      int n = v - i < VL ? (int)(v - i) : VL;
      vstoren(logits + i, vloadn(logits + i, n) * scale, n);
    }
    logits[target] -= 1.0f;
  }
}
