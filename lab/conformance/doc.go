// Package conformance sends a real Triton and tuner's engine the same requests and compares their
// answers. It compares status codes, JSON values, error texts and bytes, over HTTP and gRPC, with
// the same model repository.
//
// The requests are data (testdata/requests). So are the known and accepted differences
// (differences.go). `make -C lab conformance` runs the package. It judges only answers; lab/bench
// measures their speed.
//
// A second comparison is between the engine and its predictions by package search/queuesim.
package conformance
