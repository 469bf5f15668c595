package spec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tuner/search"
)

// Every shipped example is valid and has something to search.
func TestConfigs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../configs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples found (%v)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasSuffix(file, ".analyze.yaml"):
				_, err = ParseAnalyze(file, text, allFormats())
			case strings.HasSuffix(file, ".profile.yaml"):
				var p Profile
				p, err = ParseProfile(file, text)
				if err == nil && len(p.Space(search.Facts{Cores: 2, Batching: true}).Knobs) == 0 {
					t.Error("nothing to search")
				}
			case strings.HasSuffix(file, ".gate.yaml"):
				_, err = ParseGate(file, text)
			case strings.HasSuffix(file, "ortsweep.yaml"):
				var s Sweep
				s, err = ParseSweep(file, text)
				if err == nil && len(s.Space(search.Facts{Cores: 2, Batching: true}).Knobs) == 0 {
					t.Error("nothing to search")
				}
			default:
				t.Error("is neither a profile, an analysis nor a sweep by its name")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
