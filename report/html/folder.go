package html

import (
	"io"

	"tuner/analyze"
)

// WriteFolder writes the page of the campaign in an output folder, as `tuner analyze` does that is
// asked for nothing else. It reads the journal.
func WriteFolder(w io.Writer, folder string) error {
	r, err := analyze.RankFolder(folder, []string{Name})
	if err != nil {
		return err
	}
	return Write(w, r, false)
}
