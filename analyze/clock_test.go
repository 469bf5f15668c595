package analyze_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/profile/journal"
)

// recorded matches the wall-clock time at which a record was written.
var recorded = regexp.MustCompile(`"at":"[^"]+"`)

// The wall clock may jump between any two records, years ahead or back. The result of the campaign
// does not change. Durations come from the monotonic clock, and the order of records from their
// numbers.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 32))
	jump := func([]byte) []byte {
		return fmt.Appendf(nil, `"at":%q`, time.Date(1971+random.IntN(8000), 1, 1, 0, 0, 0, random.IntN(1e9), time.UTC).Format(time.RFC3339Nano))
	}
	for _, name := range []string{"minilm", "guided"} {
		text, err := os.ReadFile(filepath.Join("..", "testdata", "journals", name, journal.FileName))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, journal.FileName)
		want, err := analyze.Replay(write(t, dir, path, text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := analyze.Replay(write(t, dir, path, journal.Reseal(recorded.ReplaceAllFunc(text, jump))))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the campaign says something else", name)
		}
		_, records, err := journal.Read(dir)
		if err != nil || len(records) < 10 {
			t.Errorf("%s: %d records, %v", name, len(records), err)
		}
	}
}
