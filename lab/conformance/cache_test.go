//go:build conformance

package conformance

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tuner/lab/peers"
)

// TestCacheMetrics compares the figures of the response cache on the pages of metrics. Triton's
// cache writes its own once a second. The other durations and the share in
// use are only zero or not. Those of a model's hits are left out, since they are whole microseconds,
// and a hit takes less here.
func TestCacheMetrics(t *testing.T) {
	p := newPair(t, newRepository(t, "cache"), "--cache-config=local,size=4194304", "--cache-directory="+find(t).Caches)
	cases, err := ReadCases("testdata/requests/cache")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if strings.HasPrefix(c.Name, "41-cache-differs/") {
			continue // they are counted in other ways
		}
		if _, errs := p.ask(t.Context(), c); errs != [2]error{} {
			t.Fatal(errs)
		}
	}
	var pages [2][]string
	for range 50 {
		pages = [2][]string{cacheLines(t, p.triton), cacheLines(t, p.tuner)}
		if slices.Equal(pages[0], pages[1]) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if diff := cmp.Diff(pages[0], pages[1]); diff != "" || len(pages[0]) == 0 {
		t.Errorf("%d lines (-Triton +tuner):\n%s", len(pages[0]), diff)
	}
}

var positive = regexp.MustCompile(`((?:util|duration)\S*(?:\{.*\})?) [0-9.e-]*[1-9][0-9.e-]*$`)

// cacheLines returns the lines of the response cache on a server's page of metrics, sorted.
func cacheLines(t *testing.T, s *peers.Server) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(metricsPage(t, s)) {
		if strings.Contains(line, "nv_cache_") && !strings.HasPrefix(line, "nv_cache_hit_duration_per_model{") {
			lines = append(lines, positive.ReplaceAllString(strings.TrimSpace(line), "$1 some"))
		}
	}
	slices.Sort(lines)
	return lines
}
