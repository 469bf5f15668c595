// Package deployment validates the output of `tuner export` with the programs that read it. A real
// Kubernetes API server with strict validation checks manifests, the rendered chart and KServe's
// object. helm checks the chart, compose-go the Compose project, and Prometheus its own
// configuration and queries.
//
// `make -C lab conformance` runs it beside package conformance. It has its own module, since the
// product does not carry these dependencies. It only runs the tuner program and reads its files.
package deployment
