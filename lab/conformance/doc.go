// Package conformance asks a real Triton and tuner's engine the same things and compares their
// answers: status codes, JSON values, error texts and bytes, over HTTP and gRPC, with the same
// model repository.
//
// The requests are data (testdata/requests). So are the differences that are known and accepted
// (differences.go). `make -C lab conformance` runs the package. It judges answers alone: lab/bench
// measures how fast they come.
//
// A second comparison is between the engine and what package search/queuesim predicts of it.
package conformance
