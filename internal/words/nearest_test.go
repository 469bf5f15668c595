package words

import (
	"strings"
	"testing"
)

// A name longer than any known one is not compared with them.
func TestNearestOfLongNames(t *testing.T) {
	t.Parallel()
	if got := Nearest(strings.Repeat("max_batch_size", 10000), []string{"max_batch_size"}); got != "" {
		t.Errorf("near to a long name is %q", got)
	}
}
