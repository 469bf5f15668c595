// Package scheduler queues the requests of one model, forms batches of them as Triton's dynamic batcher does, and hands
// each batch to an idle instance of the model.
//
// It stands between the engine's front door (engine.Server.Start enqueues) and the executors, one per model instance. It
// knows sizes, ages, shapes and priorities of requests, never their content: it does not validate, does not touch tensors
// and keeps no statistics.
//
// The rules are those of Triton's dynamic_batch_scheduler, its queues and its rate limiter, down to when its batcher thread
// is awake; the form they take here is a state machine that is advanced under one lock by every event (arrival, idle
// instance, timer), so that the same events give the same batches. Two things differ: a request whose timeout is over is
// answered at once, where Triton may take half a second, and one whose client is gone leaves a batch that waits.
package scheduler
