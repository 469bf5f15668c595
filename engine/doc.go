// Package engine is the bundled inference server without its wires. It has model repositories and
// the life of models in them, validation of requests, and statistics. It batches through
// engine/scheduler and executes through a Backend.
//
// Data flow of a request:
//
//   - A front end (engine/rest, engine/grpcapi) decodes it into a Request.
//   - Server.Start validates it against the model's configuration and queues it.
//   - An instance gathers a batch, runs it, and slices the outputs (engine/served).
//   - Pending.Wait returns the Response.
//   - The front end encodes the response and releases it.
//
// Tensors stay in wire form all the way (little-endian, strings with a length prefix). They are
// copied at most once on the way in and not at all on the way out.
//
// The package knows neither HTTP, gRPC nor ONNX Runtime (that is engine/onnxruntime, behind
// Backend), nor any part of tuner.
package engine
