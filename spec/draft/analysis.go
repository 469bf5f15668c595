package draft

import (
	"os"
	"path/filepath"

	"tuner/spec"
)

// AnalysisOf returns the analysis of a profile's campaign: the analyze.yaml beside the profile. If
// the file is missing or belongs to another campaign, it is the default one of the profile's output.
// other has the file of another campaign, or is nil. formats are the allowed report formats.
func AnalysisOf(p spec.Profile, formats []string) (a spec.Analyze, other *spec.Analyze, err error) {
	path := filepath.Join(filepath.Dir(p.Path), AnalyzeName)
	if _, err := os.Lstat(path); err == nil {
		beside, err := spec.ReadAnalyze(path, formats)
		if err != nil || spec.IsSamePath(beside.Input, p.Output) {
			return beside, nil, err
		}
		other = &beside
	}
	a, err = spec.AnalyzeOf(p.Output, formats)
	return a, other, err
}
