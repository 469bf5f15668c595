package analyze_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"tuner/analyze"
	"tuner/journal"
)

// damage changes one byte of a text: it flips a bit of it, replaces it, takes it away or puts one before it.
func damage(random *rand.Rand, text []byte) (damaged []byte, what string) {
	at, other := random.IntN(len(text)), byte(random.IntN(256))
	switch random.IntN(4) {
	case 0:
		damaged, what = slices.Clone(text), "bit flipped"
		damaged[at] ^= 1 << random.IntN(8)
	case 1:
		damaged, what = slices.Clone(text), "replaced"
		damaged[at] = other
	case 2:
		damaged, what = slices.Delete(slices.Clone(text), at, at+1), "deleted"
	default:
		damaged, what = slices.Insert(slices.Clone(text), at, other), "inserted"
	}
	return damaged, fmt.Sprintf("byte %d %s", at, what)
}

// A journal with one byte changed, anywhere, is refused, or tells the same. What an append that was cut off leaves is the one exception: without its
// newline the last record was never written.
func TestDamagedJournals(t *testing.T) {
	t.Parallel()
	for name, from := range damagedFrom(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, journal.FileName)
			read := func(text []byte) (analyze.Campaign, error) {
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
				return analyze.Replay(dir)
			}
			want, err := read(from)
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(3, 32))
			for range 1000 {
				text, what := damage(random, from)
				if bytes.Equal(text, from) || bytes.Equal(text, from[:len(from)-1]) {
					continue
				}
				got, err := read(text)
				if err == nil && !reflect.DeepEqual(got, want) {
					t.Errorf("%s: it tells something else, and is not refused", what)
				}
			}
		})
	}
}

// damagedFrom are journals of the present format: of a grid, of a guided search, and of one that learned from the first.
func damagedFrom(t *testing.T) map[string][]byte {
	t.Helper()
	journals := map[string][]byte{}
	for _, name := range []string{"minilm", "guided"} {
		text, err := os.ReadFile(filepath.Join("..", "testdata", "journals", name, journal.FileName))
		if err != nil {
			t.Fatal(err)
		}
		journals[name] = text
	}
	dir := t.TempDir()
	writeWithEarlier(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	journals["earlier"] = text
	return journals
}
