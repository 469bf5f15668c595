// Package sequence schedules requests that belong together. The requests of a sequence run in their
// order, one at a time, always in the same slot of the same instance, where their state lies. The
// rules are those of Triton's sequence_batch_scheduler.
//
// It stands where engine/scheduler stands for other models: between engine.Server.Start, which
// enqueues, and the executors, one per model instance. It knows identities, starts, ends, shapes and
// ages of requests, never their content. It has neither controls nor states: it tells the executor
// which slot a request is in.
//
// All sequences of a model are a state machine under one lock. Every event (arrival, idle instance,
// timer) advances it, so that the same events give the same batches. A sequence gets a slot, or waits
// for one in the backlog. With the direct strategy a slot is a row of the batch. With the oldest
// strategy each sequence passes one request at a time to a batcher of its instance, which is one of
// engine/scheduler.
//
// The work for one request does not grow with the number of sequences, except by the logarithm of it.
// A sequence without a slot is held only as long as it has a request that waits. So the memory is
// bounded by the requests that wait, and by the slots.
//
// One thing differs from Triton. There, a request that is cancelled while it waits ends its sequence
// when it comes first. Here it does so at once, and in both strategies: the requests behind it are
// cancelled too, those before it are served. A state that lacks a step would be wrong.
package sequence
