package inputs

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseShapes reads the values of the flag --shape, such as "ids:1,32". It returns sizes by input
// name, without the batch dimension.
func ParseShapes(flags []string) (map[string][]int64, error) {
	shapes := map[string][]int64{}
	for _, text := range flags {
		i := strings.LastIndex(text, ":") // names can contain colons
		if i < 1 {
			return nil, fmt.Errorf("--shape %q: write NAME:SIZES, without the batch dimension, such as input_ids:32 or image:3,224,224", text)
		}
		var dims []int64
		for field := range strings.SplitSeq(text[i+1:], ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(field), 10, 64)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("--shape %q: %q is not a size: write whole numbers from 1", text, field)
			}
			dims = append(dims, n)
		}
		shapes[text[:i]] = dims
	}
	return shapes, nil
}
