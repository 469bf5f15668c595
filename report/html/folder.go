package html

import (
	"io"

	"tuner/analyze"
	"tuner/spec"
)

// WriteFolder writes the page of the campaign in an output folder, as `tuner analyze` does that is
// asked for nothing else. It reads the journal.
func WriteFolder(w io.Writer, folder string) error {
	a, err := spec.AnalyzeOf(folder, []string{Name})
	if err != nil {
		return err
	}
	r, err := analyze.RankFile(a)
	if err != nil {
		return err
	}
	return Write(w, r, false)
}
