package tuned_test

import (
	"path/filepath"
	"strings"
	"testing"

	"tuner/export/tuned"
	"tuner/export/tuned/tunedtest"
	"tuner/internal/exit"
)

func TestBadResults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		replace []string
		want    string
	}{
		"not JSON":              {[]string{`"format": 1`, `"format": `}, "is not a result of 'tuner analyze'"},
		"another format":        {[]string{`"format": 1`, `"format": 2`}, "format is 2; this version of tuner reads format 1"},
		"a hostile name":        {[]string{`"model": "minilm"`, `"model": "a\nb: c"`}, `the name "a\nb: c" cannot be a folder`},
		"no such configuration": {[]string{`"best": "minilm_config_4"`, `"best": "x"`}, `best: there is no configuration "x"`},
		"nothing satisfies":     {[]string{`"best": "minilm_config_4"`, `"best": ""`}, "since nothing satisfies the constraints"},
		"another name":          {[]string{`name: \"minilm\"\nplatform`, `name: \"other\"\nplatform`}, `"minilm" is configured as "other"`},
		"no load":               {[]string{`"concurrency": 16`, `"concurrency": 0`}, "is not a load"},
		"no figures":            {[]string{`"throughput": {`, `"thruput": {`}, "has no throughput and latency_p99 at concurrency 16"},
		"absurd figures":        {[]string{`"value": 290000000`, `"value": 29e99`}, "is impossible"},
		"absurd instances":      {[]string{`"instance_count": 2`, `"instance_count": 2000000000`}, "2000000000 instances of 1 threads are impossible"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tuned.Read(tunedtest.Analyzed(t, "../..", tunedtest.One, test.replace...), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			want := exit.Usage
			if name == "nothing satisfies" {
				want = exit.Infeasible
			}
			if code := exit.CodeOf(err); code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
		})
	}
}

// Another configuration than the best one is exported from a repository of its own.
func TestChosenConfiguration(t *testing.T) {
	t.Parallel()
	dir := tunedtest.Analyzed(t, "../..", tunedtest.One)
	models, err := tuned.Read(dir, &tuned.Chosen{Configuration: "minilm_config_4", Repository: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	if folder := models[0].Folder(); folder != filepath.Join(dir, "repository", "minilm") {
		t.Errorf("%q", folder) // the best one is in the results' own
	}
	_, err = tuned.Read(dir, &tuned.Chosen{Configuration: "minilm_config_default", Repository: "nowhere"})
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("%v, want the folder of the chosen configuration", err)
	}
}
