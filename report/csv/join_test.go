package csv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tuner/spec/csvfiles"
)

// The files of several models have the rows of all, whatever the columns of each. A model without rows knows
// no columns.
func TestJoin(t *testing.T) {
	t.Parallel()
	const (
		closed = "Model,Batch,Concurrency,Throughput (infer/sec)\n"
		open   = "Model,Batch,Request Rate,Throughput (infer/sec)\n"
	)
	for name, c := range map[string]struct {
		parts []string // "" without a file
		want  string
	}{
		"the same columns":        {[]string{closed + "a,1,8,100\n", "", closed + "b,1,4,50\nb,1,8,60\n"}, closed + "a,1,8,100\nb,1,4,50\nb,1,8,60\n"},
		"the first has no rows":   {[]string{closed, open + "b,1,20,20\n"}, open + "b,1,20,20\n"},
		"the second has no rows":  {[]string{open + "b,1,20,20\n", closed}, open + "b,1,20,20\n"},
		"none has rows":           {[]string{closed, open}, closed},
		"a load of another kind":  {[]string{closed + "a,1,8,100\n", open + "b,1,20,20\n"}, "Model,Batch,Concurrency,Throughput (infer/sec),Request Rate\na,1,8,100,\nb,1,,20,20\n"},
		"a line break in a cell":  {[]string{closed + "\"a\nx\",1,8,100\n", closed + "b,1,4,50\n"}, closed + "\"a\nx\",1,8,100\nb,1,4,50\n"},
		"two columns of one head": {[]string{"Model,GPU,GPU\na,1,2\n", "GPU,Model,GPU\n3,b,4\n"}, "Model,GPU,GPU\na,1,2\nb,3,4\n"},
	} {
		dir := t.TempDir()
		var parts []string
		for i, text := range c.parts {
			part := filepath.Join(dir, string(rune('a'+i)))
			parts = append(parts, part)
			if text == "" {
				continue
			}
			if err := os.MkdirAll(filepath.Join(part, folder), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(part, folder, "metrics-model-inference.csv"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		written, err := Join(filepath.Join(dir, "joint"), parts, csvfiles.Files{})
		if err != nil || len(written) != 1 {
			t.Fatalf("%s: wrote %v, %v", name, written, err)
		}
		got, err := os.ReadFile(written[0])
		if diff := cmp.Diff(c.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
