package words

import "strings"

// Nearest returns the known name that a user who wrote name probably meant. Either name is its
// beginning or its last words, or at most about a third of name is misspelt. It returns "" if none
// is similar.
func Nearest(name string, known []string) string {
	best, bestDistance := "", 1+max(1, (len(name)+1)/3)
	for _, k := range known {
		if len(name) > 2*len(k)+2 {
			continue // too different, and a foreign name may have megabytes
		}
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if len(name) >= 3 && (strings.HasPrefix(k, name) || strings.HasSuffix(k, "_"+name)) {
			d = 1 // cut short
		}
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance is Levenshtein's distance: the number of bytes to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
