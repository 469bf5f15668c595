package figures

import (
	"fmt"
	"slices"
	"strings"

	"tuner/analyze"
	"tuner/profile/journal"
)

// HasServers reports whether a server other than the bundled engine was measured.
func HasServers(r analyze.Result) bool { return r.Header.Server != nil || r.Header.Finals != nil }

// ServerNotes name the measured servers, unless the bundled engine was the only one.
func ServerNotes(r analyze.Result) []string {
	h := r.Header
	switch {
	case h.Finals != nil:
		return []string{fmt.Sprintf("The search was measured on %s, and the finals on %s. Only figures of the same server are compared.", h.Server, h.Finals)}
	case h.Server != nil:
		return []string{fmt.Sprintf("Measured on %s.", h.Server)}
	}
	return nil
}

// ServedBy names the source of a configuration's best figures: the ONNX Runtime build of the
// bundled engine, or the server.
func ServedBy(r analyze.Result, c analyze.Config) string {
	if r.Header.Server == nil && (r.Header.Finals == nil || !c.Best.Confirmed) {
		return "ONNX Runtime " + c.Setup.Runtime
	}
	return r.Server(*c.Best)
}

// OnServerOf keeps the points that were measured on the same server as another point, since figures
// of two servers do not compare. If the other point is nil, it keeps all.
func OnServerOf(r analyze.Result, other *analyze.Point, points []analyze.Point) []analyze.Point {
	if other == nil || r.Header.Finals == nil {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p analyze.Point) bool { return !r.AreComparable(*other, p) })
}

// Runtimes lists the ONNX Runtime builds that served or compared variants. It is empty if another
// server did both.
func Runtimes(h journal.Header) []journal.RuntimeInfo {
	switch {
	case len(h.Runtimes) > 0:
		return h.Runtimes
	case h.Runtime == journal.RuntimeInfo{} && h.Server != nil:
		return nil
	}
	return []journal.RuntimeInfo{h.Runtime}
}

// RuntimesText names the builds: a single one by its version, several by flavour and version.
func RuntimesText(h journal.Header) string {
	builds := Runtimes(h)
	if len(builds) == 1 {
		return builds[0].Version
	}
	names := make([]string, len(builds))
	for i, b := range builds {
		names[i] = b.Name()
	}
	return strings.Join(names, ", ")
}
