package search

// Kind is the requests of one shape, of a load whose requests have several.
type Kind struct {
	Share    float64 // of all requests; the shares sum to 1
	Elements float64 // of a row, all inputs together
}

// SizeOf returns the client batch of a service trial's window; false if the trial has no such
// window. The windows of a size stand together, one for each of Kinds.
func (t Trial) SizeOf(window int) (size int, ok bool) {
	i := window / max(len(t.Kinds), 1)
	if i >= len(t.Sizes) {
		return 0, false
	}
	return t.Sizes[i], true
}
