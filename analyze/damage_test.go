package analyze_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"tuner/analyze"
	"tuner/analyze/analyzetest"
	"tuner/measure"
	"tuner/profile/journal"
	"tuner/search"
)

// damage changes one byte of a text: it flips a bit, replaces the byte, removes it or inserts one
// before it.
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

// A journal with one changed byte is refused, or gives the same result. The one exception is the
// tail that an interrupted append leaves: without its newline the last record does not count.
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

// damagedFrom returns journals of the current format: of a grid, of a guided search, and of one
// that learned from the grid.
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

// numbers matches the numbers in a record's JSON, each with the character before it.
var numbers = regexp.MustCompile(`([:\[,])(-?[0-9][0-9.e+]*)`)

// A number that no campaign can have is refused, or analyzed without a crash and without an absurd
// figure. This holds even if all checksums are right.
func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	analyzetest.New(t, analyzetest.Profile).Given(search.Candidate{}, 4, 1, time.Millisecond).Given(analyzetest.Candidate(2, 1, 16), 8, 2, time.Millisecond).
		End("over", false).WriteJournal(from)
	text, err := os.ReadFile(filepath.Join(from, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	trials := bytes.Index(text, []byte(`"kind":"trial"`))
	dir := t.TempDir()
	for _, at := range numbers.FindAllSubmatchIndex(text[trials:], -1) {
		for _, extreme := range []string{"0", "-1", "9223372036854775807", "1e308"} {
			before, after := text[:trials+at[4]], text[trials+at[5]:]
			changed := slices.Concat(before, []byte(extreme), after)
			if err := os.WriteFile(filepath.Join(dir, journal.FileName), journal.Reseal(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := analyze.Replay(dir)
			if err != nil {
				continue
			}
			r, err := analyze.Analyze(c, analyze.Options{})
			if err != nil {
				continue
			}
			if what := absurdity(r); what != "" {
				t.Errorf("%s instead of %s after …%s: %s", extreme, text[trials+at[4]:trials+at[5]], before[len(before)-40:], what)
			}
		}
	}
}

// absurdity describes an impossible figure of a result; "" without one. It does not check the
// server's statistics: the counters may restart within a window.
func absurdity(r analyze.Result) string {
	for _, c := range r.Configs {
		for _, p := range c.Points {
			for metric, e := range p.Values {
				if slices.Contains([]measure.Metric{measure.QueueTime, measure.ComputeInput, measure.ComputeInfer, measure.ComputeOutput}, metric) {
					continue
				}
				if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) || e.Value < 0 || metric == measure.Throughput && e.Value > 1e6 {
					return fmt.Sprintf("%s at %s has %s %g", c.Name, p.Load, metric, e.Value)
				}
			}
		}
	}
	return ""
}

// damageBlock damages lines, or a block of bytes. It removes, repeats, moves or zeroes them, or
// replaces them by those of another journal.
func damageBlock(random *rand.Rand, text, other []byte) (damaged []byte, what string) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines = lines[:len(lines)-1] // nothing follows the last newline
	i, k := random.IntN(len(lines)), random.IntN(len(lines))
	first := random.IntN(len(text))
	end := min(len(text), first+1+random.IntN(4096))
	switch random.IntN(6) {
	case 0:
		return bytes.Join(slices.Delete(lines, i, i+1), nil), fmt.Sprintf("line %d lost", i+1)
	case 1:
		return bytes.Join(slices.Insert(lines, k, lines[i]), nil), fmt.Sprintf("line %d again before line %d", i+1, k+1)
	case 2:
		lines[i], lines[k] = lines[k], lines[i]
		return bytes.Join(lines, nil), fmt.Sprintf("lines %d and %d exchanged", i+1, k+1)
	case 3:
		damaged = slices.Clone(text)
		clear(damaged[first:end])
		return damaged, fmt.Sprintf("bytes %d to %d zeroed", first, end)
	case 4:
		return slices.Delete(slices.Clone(text), first, end), fmt.Sprintf("bytes %d to %d lost", first, end)
	default:
		foreign := bytes.SplitAfter(other, []byte("\n"))
		lines[i] = foreign[random.IntN(len(foreign)-1)]
		return bytes.Join(lines, nil), fmt.Sprintf("line %d from another journal", i+1)
	}
}

// A journal with damaged lines or blocks is refused, or gives the same result. The one exception is
// a journal that ends earlier. A campaign that was killed at that point leaves the same journal.
func TestDamagedBlocks(t *testing.T) {
	t.Parallel()
	journals := damagedFrom(t)
	for name, from := range journals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := journals["minilm"]
			if name == "minilm" {
				other = journals["guided"]
			}
			dir := t.TempDir()
			path := filepath.Join(dir, journal.FileName)
			want, err := analyze.Replay(write(t, dir, path, from))
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(4, 32))
			for range 1000 {
				text, what := damageBlock(random, from, other)
				whole := text[:bytes.LastIndexByte(text, '\n')+1]
				if bytes.HasPrefix(from, whole) {
					continue
				}
				got, err := analyze.Replay(write(t, dir, path, text))
				if err == nil && !reflect.DeepEqual(got, want) {
					t.Errorf("%s: it tells something else, and is not refused", what)
				}
			}
		})
	}
}

// write writes a journal, and returns its folder.
func write(t *testing.T, dir, path string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
