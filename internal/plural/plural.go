// Package plural prints a number with its noun, for sentences.
package plural

import (
	"fmt"
	"strings"
)

// Count prints "1 window", "2 windows", "2 batches".
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "ss"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
