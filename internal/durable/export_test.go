package durable

// Sweep removes leftovers, as the next writer of a file does first.
var Sweep = sweep
