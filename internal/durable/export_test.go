package durable

// Sweep is what the next writer of a file does first.
var Sweep = sweep
