package spec

// FromFlags is the file name in mistakes of a file that was made from flags.
const FromFlags = "command line"
