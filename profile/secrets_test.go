package profile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec"
)

// Secrets of a profile for reaching a server are not in the journal, and the campaign can be
// resumed. An older journal that contains them can be resumed too.
func TestSecretsStayOutOfTheJournal(t *testing.T) {
	t.Parallel()
	_, subject, _ := variantCase(t, "output: out")
	dir := t.TempDir()
	text := "model: m.onnx\noutput: " + dir + "\nrunner: {mode: local, args: [--api-key=s3cret], environment: {OMP_NUM_THREADS: 4, TOKEN: s3cret}}\n"
	setup := func(text string) profile.Setup {
		p, err := spec.ParseProfile("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return profile.Setup{Profile: p, Subject: subject, Server: &journal.ServerInfo{Mode: "local", Where: "/usr/bin/tritonserver"}, Facts: search.Facts{Batching: true}}
	}
	goOn := func(text string) error {
		log, err := profile.OpenLog(setup(text), time.Unix(0, 0))
		if err != nil {
			return err
		}
		return log.Close()
	}
	if err := goOn(text); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, journal.FileName)
	written, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(written), "s3cret") || !strings.Contains(string(written), "OMP_NUM_THREADS") {
		t.Errorf("%v; the journal has the secret: %s", err, written)
	}
	if err := goOn(text); err != nil {
		t.Errorf("it does not go on: %v", err)
	}
	if err := goOn(strings.ReplaceAll(text, "s3cret", "an0ther")); err != nil {
		t.Errorf("it does not go on with another secret: %v", err)
	}
	if err := goOn(strings.Replace(text, "OMP_NUM_THREADS: 4", "OMP_NUM_THREADS: 2", 1)); err == nil {
		t.Error("it goes on with another number of threads")
	}
}
