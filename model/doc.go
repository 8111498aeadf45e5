// Package model is a GPT of the minGPT family: its parameters, forward and
// backward pass, optimizer, learning-rate schedule and text generation, written
// against compute.Backend and nothing else.
//
// The network is GPT-2's (Radford et al. 2019), as in minGPT:
//
//	x = dropout(wte[tokens] + wpe[positions])
//	L times: x += dropout(attention(ln_1(x)));  x += dropout(mlp(ln_2(x)))
//	logits = ln_f(x)·lm_headᵀ
//
// Shapes are written with the legend of package compute: B sequences, T tokens
// of a sequence, C channels, H heads, V symbols, and M = B·T rows.
//
// All parameters lie in one flat float32 buffer, and so do gradients and each
// of the optimizer's moments, with the same layout (Config.Params). What is
// between two parameters is padding and always zero.
//
// Nothing here knows of ranks: a gradient is a sum over the sequences given,
// and every random number is a function of a seed and of what it is for.
package model
