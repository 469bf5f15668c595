// Package scheduler queues the requests of one model. It forms batches as Triton's dynamic batcher
// does, and passes each batch to an idle instance of the model.
//
// It stands between engine.Server.Start, which enqueues, and the executors, one per model instance.
// It knows sizes, ages, shapes and priorities of requests, never their content: it does not
// validate, does not touch tensors and keeps no statistics.
//
// The rules are those of Triton's dynamic_batch_scheduler, its queues and its rate limiter,
// including the times at which its batcher thread is awake. Here they are a state machine under one
// lock. Every event (arrival, idle instance, timer) advances it, so that the same events give the
// same batches.
//
// Three things differ. A request whose timeout is over is answered at once, where Triton may take
// half a second. A request whose client has gone leaves a waiting batch. And an idle instance may
// leave a batch to grow for clients that were just answered (package gathering).
package scheduler
