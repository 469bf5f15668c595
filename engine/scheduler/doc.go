// Package scheduler queues the requests of one model, forms batches of them as Triton's dynamic batcher does, and hands
// each batch to an idle instance of the model.
//
// It stands between the engine's front door (engine.Server.Start enqueues) and the executors (one per model instance, each
// on an operating-system thread of its own). It knows sizes, ages, shapes and priorities of requests, never their content:
// it does not validate, does not touch tensors and keeps no statistics.
//
// The rules are those of Triton's documentation of ModelDynamicBatching; the form they take here is a state machine that is
// advanced under one lock by every event (arrival, idle instance, timer), so that the same events give the same batches.
package scheduler
