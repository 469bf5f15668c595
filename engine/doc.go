// Package engine is the bundled inference server without its wires: model repositories and the life of models in them,
// validation of requests, batching through engine/scheduler, execution through a Backend, statistics.
//
// Data flow of a request: a front end (engine/rest, engine/grpcapi) decodes it into a Request → Server.Start validates it
// against the model's configuration and queues it → an instance gathers a batch, runs it, slices the outputs →
// Pending.Wait returns the Response → the front end encodes it and releases it. Tensors stay in wire form (little-endian,
// strings length-prefixed) all the way, so that they are copied at most once on the way in and not at all on the way out.
//
// The package knows neither HTTP nor gRPC nor ONNX Runtime (that is engine/onnxruntime, behind Backend), and it does not
// know that a tuner exists.
package engine
