package report_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/analyze"
	"tuner/internal/golden"
	"tuner/measure"
	"tuner/report/formats"
	"tuner/report/reporttest"
	"tuner/report/text"
	"tuner/spec"
)

// The same campaign in other views.
func TestViews(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]analyze.Options{
		"at8.table.txt":  {Top: 3, At: spec.At{Load: measure.Load{Concurrency: 8}}},
		"each.table.txt": {Top: 3, At: spec.At{Each: true}},
		"mean.table.txt": {Top: 3, Rank: spec.RankTop3Mean},
	} {
		golden.Check(t, filepath.Join("testdata", name), []byte(reporttest.Written(t, reporttest.Ranked(t, reporttest.Typical(t), o), text.WriteTable)))
	}
}

// locationFile names the optimum.
const locationFile = "Optimal_ConfigFile_Location.txt"

// The same journal gives the same bytes in every file, except the one that names the folder.
func TestReportsAreReproducible(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"minilm", "guided"} {
		models := reporttest.WithModel(t, reporttest.Recorded(t, name)).Header.Models
		write := func() map[string]string {
			r, dir := reporttest.Recorded(t, name), t.TempDir()
			r.Header.Models = models
			if _, err := formats.All().WriteAll(dir, r, append(withoutCharts(), "junit")); err != nil {
				t.Fatal(err)
			}
			return tree(t, dir)
		}
		first := write()
		for range 3 { // map order differs between passes
			again := write()
			if first[locationFile] == again[locationFile] {
				t.Errorf("%s: both are in %s", name, first[locationFile])
			}
			again[locationFile] = first[locationFile]
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("%s (-first +again):\n%s", name, diff)
			}
		}
	}
}

// tree reads all files below a folder, without the folder's own name in them.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The location file has only the path of the optimum, which is valid from any folder.
func TestLocation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{})
	if _, err := formats.All().WriteAll(dir, r, []string{spec.FormatConfig}); err != nil {
		t.Fatal(err)
	}
	path, err := os.ReadFile(filepath.Join(dir, locationFile))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(string(path), "\n"))
	if err != nil || !bytes.Contains(text, []byte(`name: "minilm"`)) {
		t.Errorf("%q does not lead to the optimum: %v", path, err)
	}
	if _, err := formats.All().WriteAll(dir, reporttest.Ranked(t, reporttest.Typical(t), analyze.Options{Goal: reporttest.Tight()}), []string{spec.FormatConfig}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, locationFile)); err == nil {
		t.Error("where nothing satisfies the constraints the file still names an optimum")
	}
}
