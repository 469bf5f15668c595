// Package sidebyside is the common part of the benchmarks that compare one of our programs with a
// real one, or our engine with itself. It has the choice of a benchmark's parts, perf_analyzer as the
// client, the job of our own engine, and the table of ratios with its record for benchstat.
//
// It stands above packages program and peers, and does not depend on the real programs. It
// prints figures and judges none.
package sidebyside
