// Package served has the models that a server serves, and the requests on their way through them:
// a model checks a request and queues it, an instance gathers a batch, runs it on a session, and
// slices the outputs into responses.
//
// Which models there are, and how they come and go, is the business of package engine.
package served
