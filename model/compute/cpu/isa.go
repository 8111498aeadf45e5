package cpu

// #include "kernels.h"
//
// static double run_peak(const ddp_kernels *k, int64_t rounds) { return k->peak(rounds); }
//
// #if defined(__x86_64__)
// static int has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
// static int has_avx512(void) {
//   return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
//          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
// }
// static const ddp_kernels *pick(int isa) { return isa == 2 ? &ddp_avx512 : isa == 1 ? &ddp_avx2 : &ddp_generic; }
// #else
// static int has_avx2(void) { return 0; }
// static int has_avx512(void) { return 0; }
// static const ddp_kernels *pick(int isa) { (void)isa; return &ddp_generic; }
// #endif
import "C"

import (
	"slices"
	"time"
)

// names are all instruction sets, worst to best.
var names = []string{"generic", "avx2", "avx512"}

// ISAs are the instruction sets that this machine can run, worst to best.
func ISAs() []string {
	have := names[:1]
	if C.has_avx2() != 0 {
		have = names[:2]
		if C.has_avx512() != 0 {
			have = names[:3]
		}
	}
	return slices.Clone(have)
}

func table(isa string) *C.ddp_kernels { return C.pick(C.int(slices.Index(names, isa))) }

// peakTime is how long PeakFLOPS measures.
const peakTime = 20 * time.Millisecond

// PeakFLOPS measures how many float32 operations a second one core does when it
// only multiplies and adds in registers: what a product can at best reach. isa
// is one of ISAs().
func PeakFLOPS(isa string) float64 {
	const rounds = 20000
	k, best := table(isa), 0.0
	for end := time.Now().Add(peakTime); time.Now().Before(end); {
		began := time.Now()
		flops := float64(C.run_peak(k, rounds))
		best = max(best, flops/time.Since(began).Seconds())
	}
	return best
}
