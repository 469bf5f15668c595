// Package conformance asks a real Triton and tuner's engine the same things and compares what they answer: status codes,
// JSON values, error texts and bytes, over HTTP and gRPC, with the same model repository.
//
// The requests are data (testdata/requests), and so are the differences that are known and accepted (differences.go). The
// package stands beside the data flow: it is what `make -C lab conformance` runs, and no part of the product. It judges answers
// alone; how fast they come is a matter of lab/bench.
//
// A second comparison is between the engine and what package search/queuesim predicts of it.
package conformance
