// Package sidebyside is what the benchmarks share that measure a program of ours beside a real one:
// the choice of a benchmark's parts, perf_analyzer as the client, and the table of ratios with its
// record for benchstat.
//
// It stands above packages program and peers, and knows nothing of what is compared. It prints
// figures and judges none.
package sidebyside
