// Package deployment validates what `tuner export` writes by the code that will read it: manifests,
// the rendered chart and KServe's object by a real Kubernetes API server with strict validation,
// the chart by helm, the Compose project by compose-go, Prometheus' configuration and queries by
// Prometheus.
//
// It is what `make -C lab conformance` runs beside package conformance, in a module of its own: the
// product does not carry these dependencies. It runs the tuner program and reads its files alone.
package deployment
