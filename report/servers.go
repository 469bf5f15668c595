package report

import (
	"fmt"
	"slices"

	"tuner/analyze"
)

// hasServers reports whether another server than the bundled engine was measured.
func hasServers(r analyze.Result) bool { return r.Header.Server != nil || r.Header.Finals != nil }

// serverNotes say which server the figures come from, where it is not the bundled engine alone.
func serverNotes(r analyze.Result) []string {
	h := r.Header
	switch {
	case h.Finals != nil:
		return []string{fmt.Sprintf("Two servers: the search was measured on %s, what is confirmed on %s. Only figures of one server are compared.", h.Server, h.Finals)}
	case h.Server != nil:
		return []string{fmt.Sprintf("Measured on %s.", h.Server)}
	}
	return nil
}

// servedBy names what a configuration's best figures come from: the build of ONNX Runtime in the bundled engine, or the other server.
func servedBy(r analyze.Result, c analyze.Config) string {
	if r.Header.Server == nil && (r.Header.Finals == nil || !c.Best.Confirmed) {
		return "ONNX Runtime " + c.Setup.Runtime
	}
	return r.Server(*c.Best)
}

// onServerOf are those of some points that were measured on the server of another one, which their figures compare with; all where that is nil.
func onServerOf(r analyze.Result, other *analyze.Point, points []analyze.Point) []analyze.Point {
	if other == nil || r.Header.Finals == nil {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p analyze.Point) bool { return !r.AreComparable(*other, p) })
}
